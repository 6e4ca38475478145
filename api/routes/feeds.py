"""Feeds, the sources of articles. They belong to the installation."""

from collections import Counter
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import Field

from api import feed_lists
from api.callers import INSTALLATION, insider_of
from api.cancels import Reason
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from api.histories import History, SubjectEventOut, history_of
from api.idempotency import Keep, commit_once, create_once
from api.pages import Listing, Page, page
from feeds import feed_status, opml, sources
from feeds.addresses import LONGEST_RAW_URL
from feeds.lifecycle import FEED_STATES
from feeds.models import FeedSource, RawArticle
from feeds.opml import BadOpml
from feeds.sources import LONGEST_TITLE, AlreadyThere, NotAdded
from work.operations.outcomes import DONE, Outcome

routes = Router(tags=["feeds"])

# The same permissions as in the admin.
ADD, CHANGE, DELETE = "feeds.add_feedsource", "feeds.change_feedsource", "feeds.delete_feedsource"
# Feeds per uploaded list. The limit is low because the caller waits for the response, and the web process is busy
# meanwhile. `manage.py feed import` accepts longer lists.
MOST_AT_ONCE = 1000
# The articles of a feed are counted only up to this number.
MOST_COUNTED = 10_000


class FeedOut(Out):
    id: int
    url: str
    title: str
    site_url: str
    state: Literal["new", "ok", "failing", "paused"]
    standing: Annotated[str, Field(description="state of the feed, in words")]
    next_check_at: Annotated[
        datetime, Field(description="time of the next check; later and later while the feed fails")
    ]
    checked_at: datetime | None
    succeeded_at: datetime | None
    failures: Annotated[int, Field(description="failures in a row")]
    failing_since: Annotated[
        datetime | None, Field(description="time of the first of these failures; null if there are none")
    ]
    last_error: Annotated[str, Field(description="last failure, or what could not be stored")]
    paused_at: datetime | None
    paused_by: str
    created_at: datetime


class FeedDetailOut(FeedOut):
    articles: Annotated[int, Field(description=f"counted up to {MOST_COUNTED:,}")]


class ArticleOut(Out):
    id: int
    feed_id: int
    url: str
    title: str
    summary: str
    author: str
    published_at: datetime | None
    happened_at: datetime
    seen_at: datetime


class ImportedOut(Out):
    line: int | None
    url: str
    title: str
    result: Annotated[str, Field(description="added, already_there, twice, or the code of the refusal")]
    id: int | None
    message: str


class ImportOut(Out):
    rehearsed: bool
    counts: dict[str, int]
    feeds: list[ImportedOut]


class Feeds(Listing):
    state: Literal["failing", "paused", "due"] | None = None


class FeedAddition(In):
    url: Annotated[
        str, Field(max_length=LONGEST_RAW_URL, description="URL of the feed itself, not of a page that links to it")
    ]
    title: Annotated[str, Field(max_length=LONGEST_TITLE, description="title (empty: the feed's own title)")] = ""


class FeedRenaming(In):
    title: Annotated[str, Field(max_length=LONGEST_TITLE, description="title (empty: the feed's own title)")]


class FeedPause(Reason):
    pass


@routes.get("/feeds", response=responses({200: Page[FeedOut]}))
def list_feeds(request: HttpRequest, listing: Query[Feeds]) -> dict[str, Any]:
    insider_of(request)
    rows = getattr(FeedSource.objects, listing.state)() if listing.state else FeedSource.objects.all()
    return page(rows, listing, row_of)


@routes.post("/feeds", response=responses({201: FeedOut}, 409, 422), auth=INSTALLATION)
def add(request: HttpRequest, body: FeedAddition) -> HttpResponseBase:
    """Add a feed. It is fetched when the job runs next."""
    caller = insider_of(request, ADD)

    def make() -> dict[str, Any]:
        try:
            return row_of(sources.add(body.url, title=body.title, actor=caller.actor))
        except AlreadyThere as there:
            raise Problem("already_there", str(there), {"feed_id": there.feed.pk}) from there
        except NotAdded as refused:
            raise Problem("bad_url", str(refused), {"reason": refused.code}) from refused

    return create_once(request, 201, make)


@routes.post(
    "/feeds/import",
    response=responses({200: ImportOut}, 409, 422),
    auth=INSTALLATION,
    openapi_extra=feed_lists.UPLOAD,
    summary="Import feeds",
)
def take_in(request: HttpRequest, rehearse: bool = False) -> HttpResponseBase:
    """Add all feeds of an OPML list, as exported by other readers. Each feed has its own result."""
    caller, data = insider_of(request, ADD), feed_lists.body_of(request)
    try:
        entries = opml.read(data)
    except BadOpml as bad:
        raise Problem("bad_list", str(bad)) from bad
    if len(entries) > MOST_AT_ONCE:
        message = f"The list has {len(entries)} feeds; the limit is {MOST_AT_ONCE}. Split the list."
        raise Problem("too_large", message, {"most": MOST_AT_ONCE, "found": len(entries)})

    def attempt(keep: Keep) -> dict[str, Any]:
        # Each feed has its own transaction. If a request fails midway, a repetition finds the feeds that were already
        # added.
        results = list(sources.import_entries(entries, actor=caller.actor, rehearse=rehearse))
        rows = [
            {"line": each.entry.line, "url": each.entry.url, "title": each.entry.title}
            | {"result": each.result, "id": each.feed_id, "message": each.message}
            for each in results
        ]
        counts = dict(Counter(each.result for each in results))
        data = {"rehearsed": rehearse, "counts": counts, "feeds": rows}
        keep(data)
        return data

    return commit_once(request, 200, attempt, feed_lists.sha256_of(data))


@routes.get("/feeds/export", response=responses({200: None}), openapi_extra=feed_lists.DOWNLOAD, summary="Export feeds")
def export(request: HttpRequest) -> HttpResponse:
    """Export all feeds as OPML for other readers."""
    insider_of(request)
    return feed_lists.response_of(opml.write(sources.entries()))


@routes.get("/feeds/{id:id}", response=responses({200: FeedDetailOut}))
def show(request: HttpRequest, id: int) -> dict[str, Any]:
    insider_of(request)
    feed = _feed(id)
    return row_of(feed) | {"articles": feed.articles.order_by()[:MOST_COUNTED].count()}


@routes.patch("/feeds/{id:id}", response=responses({200: FeedOut}), auth=INSTALLATION)
def rename(request: HttpRequest, id: int, body: FeedRenaming) -> dict[str, Any]:
    """Rename a feed."""
    caller = insider_of(request, CHANGE)
    sources.rename(_feed(id), body.title, actor=caller.actor)
    return row_of(_feed(id))


@routes.delete("/feeds/{id:id}", response=responses({200: FeedOut}, 409), auth=INSTALLATION)
def remove(request: HttpRequest, id: int) -> dict[str, Any]:
    """Remove a feed that has no articles, and return it. Pause a feed with articles instead."""
    caller, feed = insider_of(request, DELETE), _feed(id)
    _expect_done(feed, sources.remove(feed, actor=caller.actor))
    return row_of(feed)


@routes.post("/feeds/{id:id}/check", response=responses({200: FeedOut}, 409), auth=INSTALLATION)
def check(request: HttpRequest, id: int) -> dict[str, Any]:
    """Make a feed due now. It is fetched when the job runs next."""
    caller, feed = insider_of(request, CHANGE), _feed(id)
    _expect_done(feed, sources.make_due(feed, actor=caller.actor))
    return row_of(_feed(id))


@routes.post("/feeds/{id:id}/pause", response=responses({200: FeedOut}, 409), auth=INSTALLATION)
def pause(request: HttpRequest, id: int, body: FeedPause | None = None) -> dict[str, Any]:
    """Pause a feed. It is not fetched until it is resumed."""
    caller, feed = insider_of(request, CHANGE), _feed(id)
    _expect_done(feed, sources.pause(feed, actor=caller.actor, reason=body.reason if body else ""))
    return row_of(_feed(id))


@routes.post("/feeds/{id:id}/resume", response=responses({200: FeedOut}, 409), auth=INSTALLATION)
def resume(request: HttpRequest, id: int) -> dict[str, Any]:
    """Resume a feed and make it due now."""
    caller, feed = insider_of(request, CHANGE), _feed(id)
    _expect_done(feed, sources.resume(feed, actor=caller.actor))
    return row_of(_feed(id))


@routes.get("/feeds/{id:id}/articles", response=responses({200: Page[ArticleOut]}))
def list_articles(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    insider_of(request)
    return page(RawArticle.objects.filter(feed=_feed(id)).defer("embedding", "original_url"), listing, ArticleOut.of)


@routes.get("/feeds/{id:id}/events", response=responses({200: Page[SubjectEventOut]}))
def list_events(request: HttpRequest, id: int, listing: Query[History]) -> dict[str, Any]:
    """List the history of a feed, with the actions of people."""
    insider_of(request)
    return history_of(FEED_STATES.kind, _feed(id).pk, listing)


def row_of(feed: FeedSource) -> dict[str, Any]:
    return FeedOut.of(feed, standing=feed_status.state_text(feed))


def _feed(id: int) -> FeedSource:
    feed = FeedSource.objects.filter(pk=id).first()
    if feed is None:
        raise not_found("feed", id)
    return feed


def _expect_done(feed: FeedSource, outcome: Outcome) -> None:
    if outcome == Outcome.NOT_FOUND:
        raise not_found("feed", feed.pk)
    if outcome not in DONE:
        message = f"Nothing was changed: feed {feed.pk} {outcome}."
        raise Problem("conflict", message, {"state": feed.state})
