"""The list of feeds, the page of one feed with its actions, and the forms for adding feeds."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from api.audit import record_of
from console import formatting, lists
from console.frame import act, actor_of, back, for_members, must_have, page, person_of, report, show
from feeds import feed_status, opml, sources
from feeds.forms import FeedForm
from feeds.lifecycle import FEED_STATES
from feeds.models import FeedSource
from feeds.opml import MOST_BYTES, BadOpml
from work.models import Event
from work.operations.outcomes import Outcome, sentence
from work.operations.previews import reason_of

# The same permissions as in the admin and the API.
ADD, CHANGE = "feeds.add_feedsource", "feeds.change_feedsource"
STATES = ("failing", "paused", "due")
# The articles of a feed are counted only up to this number.
MOST_COUNTED = 10_000
LATEST_ARTICLES = 20
LATEST_EVENTS = 30
# Feeds per uploaded list, limited because the user waits for the response. `manage.py feed import` accepts longer
# lists.
MOST_AT_ONCE = 1000


@page
@for_members
def feeds(request: HttpRequest) -> HttpResponseBase:
    state, rows = request.GET.get("state", ""), FeedSource.objects.all()
    if state in STATES:
        rows = getattr(FeedSource.objects, state)()
    slice = lists.slice_of(request, rows)
    context = {
        "slice": slice,
        "feeds": [(feed, feed_status.state_text(feed), feed_status.next_check_text(feed)) for feed in slice.rows],
        "states": STATES,
        "state": state if state in STATES else "",
        "may_add": person_of(request).has_perm(ADD),
    }
    return show(request, "console/feeds.html", "Feeds", context, live=reverse("console:live"))


@page
@for_members
def feed(request: HttpRequest, id: int) -> HttpResponseBase:
    feed = _find(request, id)
    number = feed.articles.order_by()[: MOST_COUNTED + 1].count()
    articles = feed.articles.defer("embedding", "original_url", "summary").order_by("-pk")
    context = {
        "feed": feed,
        "how": feed_status.state_text(feed),
        "when": feed_status.next_check_text(feed),
        "may": person_of(request).has_perm(CHANGE),
        "number": f"over {MOST_COUNTED:,}" if number > MOST_COUNTED else formatting.number(number, "article"),
        "articles": articles[:LATEST_ARTICLES],
        "events": Event.objects.about(FEED_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    return show(request, "console/feed.html", f"Feed {id}", context, live=reverse("console:live"))


@act
@for_members
def check(request: HttpRequest, id: int) -> HttpResponseBase:
    return _change(request, id, sources.make_due)


@act
@for_members
def pause(request: HttpRequest, id: int) -> HttpResponseBase:
    return _change(request, id, partial(sources.pause, reason=reason_of(request)))


@act
@for_members
def resume(request: HttpRequest, id: int) -> HttpResponseBase:
    return _change(request, id, sources.resume)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@for_members
def add(request: HttpRequest) -> HttpResponseBase:
    """Add a feed. If the feed is refused, show the form again with the error and the input."""
    must_have(request, ADD)
    form = FeedForm(request.POST if request.method == "POST" else None)
    if feed := form.made(actor_of(request)):
        messages.success(request, f"Added feed {feed.pk}, {feed}. It is checked when the job runs next.")
        return redirect("console:feed", feed.pk)
    return show(request, "console/add_feed.html", "Add feeds", {"form": form})


@act
@for_members
def import_feeds(request: HttpRequest) -> HttpResponseBase:
    """Add all feeds of an uploaded list, or only show what would happen to each feed."""
    must_have(request, ADD)
    is_preview = "rehearse" in request.POST
    try:
        file = request.FILES.get("file")
        if file is None:
            raise BadOpml("No file was sent. Choose a file.")
        entries = opml.read(file.read(MOST_BYTES + 1))
        if len(entries) > MOST_AT_ONCE:
            limit = f"at most {MOST_AT_ONCE} can be added at once"
            raise BadOpml(f"The list has {len(entries)} feeds, but {limit}. Split the list.")
        results = list(sources.import_entries(entries, actor=actor_of(request), rehearse=is_preview))
    except BadOpml as error:
        messages.warning(request, formatting.after("No feed was added", str(error)))
        return redirect("console:add_feed")
    counts = Counter(each.result.replace("_", " ") for each in results)
    context = {"results": results, "counts": dict(counts), "is_preview": is_preview}
    return show(request, "console/imported_feeds.html", "Feed import", context)


@page
@for_members
def export(request: HttpRequest) -> HttpResponseBase:
    headers = {"Content-Disposition": 'attachment; filename="feeds.opml"'}
    return HttpResponse(opml.write(sources.entries()), "application/xml; charset=utf-8", headers=headers)


def _find(request: HttpRequest, id: int) -> FeedSource:
    feed = FeedSource.objects.filter(pk=id).first()
    if feed is None:
        raise Http404("No such feed.")
    if record := record_of(request):
        record.saw(FEED_STATES.kind, id, None)
    return feed


def _change(request: HttpRequest, id: int, verb: Callable[..., Outcome]) -> HttpResponseBase:
    must_have(request, CHANGE)
    outcome = verb(_find(request, id), actor=actor_of(request))
    report(request, outcome, sentence(FeedSource, Counter([outcome])))
    return back(request, reverse("console:feed", args=[id]))
