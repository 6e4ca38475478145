"""The list of feeds, the page of one with its actions, and forms to add feeds."""

from collections import Counter
from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from api.audit import record_of
from console import formatting, lists
from console.frame import act, back, for_members, must_have, page, person_of, reason_of, show
from feeds import feed_status, opml, sources
from feeds.forms import FeedForm
from feeds.lifecycle import FEED_STATES
from feeds.models import FeedSource
from feeds.opml import MOST_BYTES, BadOpml
from feeds.sources import Imported
from work.models import Event
from work.operations.outcomes import DONE, Outcome, sentence

# The same permissions as in the admin and the API.
ADD, CHANGE = "feeds.add_feedsource", "feeds.change_feedsource"
STATES = ("failing", "paused", "due")
# Articles of one feed are counted up to this number.
MOST_COUNTED = 10_000
LATEST_ARTICLES = 20
LATEST_EVENTS = 30
# Feeds of one list, because the user waits for the response. `manage.py feed import` takes longer lists.
MOST_AT_ONCE = 1000


@page
@for_members
def feeds(request: HttpRequest) -> HttpResponseBase:
    asked = request.GET.get("state", "")
    state, rows = (asked, getattr(FeedSource.objects, asked)()) if asked in STATES else ("", FeedSource.objects.all())
    found = lists.slice_of(request, rows)
    context = {
        "slice": found,
        "standings": [(feed, feed_status.how(feed), feed_status.when(feed)) for feed in found.rows],
        "states": STATES,
        "state": state,
        "may_add": person_of(request).has_perm(ADD),
    }
    return show(request, "console/feeds.html", "Feeds", context, live=reverse("console:live"))


@page
@for_members
def feed(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _feed(request, id)
    number = found.articles.order_by()[: MOST_COUNTED + 1].count()
    articles = found.articles.defer("embedding", "original_url", "summary").order_by("-pk")
    context = {
        "feed": found,
        "how": feed_status.how(found),
        "when": feed_status.when(found),
        "may": person_of(request).has_perm(CHANGE),
        "number": f"over {MOST_COUNTED:,}" if number > MOST_COUNTED else formatting.number(number, "article"),
        "articles": articles[:LATEST_ARTICLES],
        "events": Event.objects.about(FEED_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
    }
    return show(request, "console/feed.html", f"Feed {id}", context, live=reverse("console:live"))


@act
@for_members
def check(request: HttpRequest, id: int) -> HttpResponseBase:
    return _done(request, id, lambda feed, actor: sources.make_due(feed, actor=actor))


@act
@for_members
def pause(request: HttpRequest, id: int) -> HttpResponseBase:
    reason = reason_of(request)
    return _done(request, id, lambda feed, actor: sources.pause(feed, actor=actor, reason=reason))


@act
@for_members
def resume(request: HttpRequest, id: int) -> HttpResponseBase:
    return _done(request, id, lambda feed, actor: sources.resume(feed, actor=actor))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@for_members
def add(request: HttpRequest) -> HttpResponseBase:
    """Add a feed. If it is refused, the form shows the error and keeps the input."""
    must_have(request, ADD)
    form = FeedForm(request.POST if request.method == "POST" else None)
    if made := form.made(person_of(request).get_username()):
        messages.success(request, f"Added feed {made.pk}, {made}. It is checked when the job runs next.")
        return redirect("console:feed", made.pk)
    return show(request, "console/add_feed.html", "Add feeds", {"form": form})


@act
@for_members
def take_in(request: HttpRequest) -> HttpResponseBase:
    """Add all feeds of a list, or only show what would happen to each."""
    must_have(request, ADD)
    rehearse = "rehearse" in request.POST
    try:
        done = _taken_in(request, rehearse=rehearse)
    except BadOpml as bad:
        messages.warning(request, formatting.after("No feed was added", str(bad)))
        return redirect("console:add_feed")
    counts = Counter(each.result.replace("_", " ") for each in done)
    context = {"done": done, "counts": dict(counts), "rehearse": rehearse}
    return show(request, "console/imported_feeds.html", "Feed import", context)


@page
@for_members
def export(request: HttpRequest) -> HttpResponseBase:
    headers = {"Content-Disposition": 'attachment; filename="feeds.opml"'}
    return HttpResponse(opml.write(sources.entries()), "application/xml; charset=utf-8", headers=headers)


def _feed(request: HttpRequest, id: int) -> FeedSource:
    found = FeedSource.objects.filter(pk=id).first()
    if found is None:
        raise Http404("No such feed.")
    if record := record_of(request):
        record.saw(FEED_STATES.kind, id, None)
    return found


def _done(request: HttpRequest, id: int, verb: Callable[[FeedSource, str], Outcome]) -> HttpResponseBase:
    must_have(request, CHANGE)
    outcome = verb(_feed(request, id), person_of(request).get_username())
    said = sentence(FeedSource, Counter([outcome]))
    messages.add_message(request, messages.SUCCESS if outcome in DONE else messages.WARNING, said)
    return back(request, reverse("console:feed", args=[id]))


def _taken_in(request: HttpRequest, *, rehearse: bool) -> list[Imported]:
    file = request.FILES.get("file")
    if file is None:
        raise BadOpml("No file was sent. Choose a file.")
    entries = opml.read(file.read(MOST_BYTES + 1))
    if len(entries) > MOST_AT_ONCE:
        raise BadOpml(
            f"The list has {len(entries)} feeds, but at most {MOST_AT_ONCE} can be added at once. Split the list."
        )
    return list(sources.take_in(entries, actor=person_of(request).get_username(), rehearse=rehearse))
