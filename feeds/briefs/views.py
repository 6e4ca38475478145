"""Public pages of briefs. Briefs are immutable, so each response has an ETag of its content, and a repeated request is
answered with 304 if nothing has changed.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from itertools import groupby
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.db.models import Count, OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.http import http_date, quote_etag
from django.views.decorators.http import require_safe

from feeds.briefs.pages import entry_of, page_of, title_of, with_items
from feeds.briefs.plain import text_of
from feeds.briefs.rss import rss_of
from feeds.models import Brief, BriefItem

# Briefs per page of the list.
MOST_LISTED = 100
MOST_IN_RSS = 30

NAME = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[0-9]{1,8})?"

View = Callable[..., HttpResponse]


def for_readers(view: View) -> View:
    """Let signed-in users in, or everyone if ADE_PUBLIC_BRIEFS is set."""

    @require_safe
    @wraps(view)
    def wrapper(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if settings.ADE_PUBLIC_BRIEFS or request.user.is_authenticated:
            return view(request, **kwargs)
        return redirect_to_login(request.get_full_path())

    return wrapper


@for_readers
def briefs(request: HttpRequest) -> HttpResponse:
    all_briefs = Brief.objects.order_by("-scheduled_for")
    if before := request.GET.get("before"):
        all_briefs = all_briefs.filter(scheduled_for__lt=_brief_or_404(before).scheduled_for)
    first = BriefItem.objects.filter(brief=OuterRef("pk")).order_by("position")
    annotated = all_briefs.annotate(events=Count("items"), first=Subquery(first.values("headline")[:1]))
    rows = list(annotated[: MOST_LISTED + 1])
    entries = [entry_of(row) for row in rows[:MOST_LISTED]]
    context = {
        "title": "Briefs",
        "months": [(month, list(of_it)) for month, of_it in groupby(entries, lambda entry: entry.month)],
        "older": rows[MOST_LISTED - 1].name if len(rows) > MOST_LISTED else "",
    }
    newest = max((row.published_at for row in rows), default=None)
    return _html(request, "feeds/briefs.html", context, newest)


@for_readers
def brief(request: HttpRequest, name: str) -> HttpResponse:
    brief = _brief_or_404(name, with_items(Brief.objects.all()))
    others = Brief.objects.only("name", "time_zone", "scheduled_for", "published_at")
    previous = others.filter(scheduled_for__lt=brief.scheduled_for).order_by("-scheduled_for").first()
    following = others.filter(scheduled_for__gt=brief.scheduled_for).order_by("scheduled_for").first()
    page = page_of(brief)
    context = {
        "title": page.title,
        "page": page,
        "previous": previous and (previous.name, title_of(previous)),
        "following": following and (following.name, title_of(following)),
    }
    # A brief never changes, but its links to the previous and next brief do.
    neighbours = (each.published_at for each in (previous, following) if each)
    return _html(request, "feeds/brief.html", context, max([brief.published_at, *neighbours]))


@for_readers
def brief_as_text(request: HttpRequest, name: str) -> HttpResponse:
    brief = _brief_or_404(name, with_items(Brief.objects.all()))
    return _response(request, text_of(page_of(brief)), "text/plain; charset=utf-8", brief.published_at)


@require_safe
def rss(request: HttpRequest) -> HttpResponse:
    if not (settings.ADE_PUBLIC_BRIEFS or request.user.is_authenticated):
        # Feed readers request this URL, and could not read the sign-in page as a feed.
        message = "Sign in to read the briefs. With ADE_PUBLIC_BRIEFS=true, everyone can read them.\n"
        return HttpResponse(message, "text/plain; charset=utf-8", 403)
    latest = list(with_items(Brief.objects.order_by("-scheduled_for"))[:MOST_IN_RSS])

    def url_of(name: str) -> str:
        return request.build_absolute_uri(reverse("feeds:brief", args=[name]))

    home, itself = (request.build_absolute_uri(reverse(f"feeds:{name}")) for name in ("briefs", "rss"))
    text = rss_of([page_of(each) for each in latest], home=home, itself=itself, url_of=url_of)
    newest = max((each.published_at for each in latest), default=None)
    return _response(request, text, "application/rss+xml; charset=utf-8", newest)


def _brief_or_404(name: str, briefs: Any = Brief) -> Brief:
    if not re.fullmatch(NAME, name):
        raise Http404
    brief: Brief = get_object_or_404(briefs, name=name)
    return brief


def _html(request: HttpRequest, template: str, context: dict[str, Any], modified: datetime | None) -> HttpResponse:
    # Use only these two values of the admin context, because the full context queries the user's permissions.
    site = {"site_title": admin.site.site_title, "site_header": admin.site.site_header}
    text = render_to_string(template, site | context, request)
    return _response(request, text, "text/html; charset=utf-8", modified)


def _response(request: HttpRequest, text: str, content_type: str, modified: datetime | None) -> HttpResponse:
    etag = quote_etag(hashlib.sha256(text.encode()).hexdigest())
    seconds = int(modified.timestamp()) if modified else None
    response = get_conditional_response(request, etag, seconds) or HttpResponse(text, content_type)
    response["ETag"] = etag
    if seconds is not None:
        response["Last-Modified"] = http_date(seconds)
    # Clients may store the page but must revalidate it: access may be withdrawn, and the neighbours of a brief change.
    is_public = settings.ADE_PUBLIC_BRIEFS
    patch_cache_control(response, no_cache=True, **{"public" if is_public else "private": True})
    return response
