"""Fetches one feed and stores its new articles. A check can be repeated at any time, even by several workers at once,
because each URL is stored only once.

A feed is fetched and parsed without touching the database. The result is written in one transaction, together with the
state of the feed, so a worker that dies leaves nothing half stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from feeds import check_times, lifecycle
from feeds.addresses import canonical_or_empty
from feeds.fetching import FeedResponse, FetchFailed, fetch
from feeds.models import FeedSource
from feeds.reading import ParsedFeed, ReadFailed, read
from feeds.storing import ItemsByUrl, Selection, group_by_url, select_new, store
from work import clock, failpoints
from work.claims import Interrupted
from work.sql.contention import patiently

# Time limit of the whole fetch. A worker that is asked to stop waits no longer than this.
FETCH_SECONDS = 20.0
LONGEST_TITLE = 300
LONGEST_MESSAGE = 1000

Stop = Callable[[], str | None]

log = structlog.get_logger(__name__)


class FeedGone(Exception):
    """The feed was removed while it was being fetched."""


@dataclass(frozen=True)
class FetchResult:
    """The response of a feed and its parsed content, which is None if the server answered that nothing is new."""

    response: FeedResponse
    content: ParsedFeed | None


@dataclass(frozen=True)
class CheckResult:
    feed_id: int
    # Numbers of articles: new; already stored or purged; could not be stored.
    new: int = 0
    known: int = 0
    refused: int = 0
    unchanged: bool = False
    # Sentences that say what is broken in the feed, or which items could not be stored.
    flaw: str = ""
    # Why the feed could not be read at all, as a message and a code. In that case none of its articles are stored.
    failure: str = ""
    code: str = ""
    next_check_at: datetime | None = None


@dataclass(frozen=True)
class CheckPreview:
    result: FetchResult
    selection: Selection = field(default_factory=Selection)
    flaw: str = ""


def check(feed: FeedSource, *, actor: str, since: datetime | None = None) -> CheckResult:
    """Fetch and store a feed, even if it is not due. The time until the next check counts from `since`."""
    return store_result(feed, try_fetch(feed), actor=actor, since=since or clock.now())


def preview(feed: FeedSource) -> CheckPreview:
    """Return what a check would find, without writing. `feed` may be unsaved. Raises FetchFailed and ReadFailed."""
    result = fetch_feed(FeedSource(url=feed.url))
    assert result.content
    selection = select_new(feed, group_by_url(result.content.items()))
    return CheckPreview(result, selection, _flaw_of(result.content, selection))


def try_fetch(feed: FeedSource, stop: Stop = lambda: None) -> FetchResult | Exception:
    """Fetch a feed and return the result or the error. Uses no database. Raises Interrupted if `stop` returned a
    reason.
    """
    try:
        return fetch_feed(feed, stop)
    except Interrupted:
        raise
    except (FetchFailed, ReadFailed) as error:
        return error
    except Exception as error:
        log.exception("ingestion.broken", feed=feed.pk)
        return error


def fetch_feed(feed: FeedSource, stop: Stop = lambda: None) -> FetchResult:
    """Fetch and parse a feed. Raises FetchFailed, ReadFailed, or Interrupted if `stop` returned a reason."""
    response = fetch(feed.url, etag=feed.etag, last_modified=feed.last_modified, seconds=FETCH_SECONDS)
    if response.unchanged:
        return FetchResult(response, None)
    content = read(response.body, response.url, response.content_type, stop=stop)
    return FetchResult(replace(response, body=b""), content)


def store_result(feed: FeedSource, result: FetchResult | Exception, *, actor: str, since: datetime) -> CheckResult:
    """Store the result of a fetch. Raises the database's error if the database is unavailable."""
    failpoints.hit("ingestion.fetched")
    if isinstance(result, Exception):
        return _record_failure(feed, result, actor, since)
    try:
        items = group_by_url(result.content.items() if result.content else ())
        return patiently(lambda: _store(feed, result, items, actor, since))
    except FeedGone:
        return CheckResult(feed.pk, failure="The feed was removed while it was being checked.", code="removed")
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        # A bug that one feed triggers must not stop the others.
        log.exception("ingestion.broken", feed=feed.pk)
        return _record_failure(feed, error, actor, since)


def _store(feed: FeedSource, result: FetchResult, items: ItemsByUrl, actor: str, since: datetime) -> CheckResult:
    response, content = result.response, result.content
    validators = {"etag": response.etag, "last_modified": response.last_modified}
    if content and content.broken:
        # The feed may have been cut off. With its ETag, the server would answer "not modified" and never send the rest.
        validators = {"etag": "", "last_modified": ""}
    with failpoints.inside("ingestion.stored"), transaction.atomic():
        flaw = _follow_move(feed, response.moved_to, actor)
        if content:
            selection = select_new(feed, items)
            new = store(selection)
            site_url = canonical_or_empty(content.site_url)
            lifecycle.set_missing_details(feed.pk, title=content.title[:LONGEST_TITLE], site_url=site_url)
            flaw = " ".join(filter(None, (flaw, _flaw_of(content, selection))))
            next_check_at = check_times.after_success(since, content.ttl_seconds)
            checked = CheckResult(
                feed.pk, new, selection.known, selection.refused, flaw=flaw, next_check_at=next_check_at
            )
        else:
            next_check_at = check_times.after_success(since)
            checked = CheckResult(feed.pk, unchanged=True, flaw=flaw, next_check_at=next_check_at)
        # An unchanged feed still has the flaws of its last response.
        new_flaw = flaw if content else flaw or None
        if not lifecycle.record_success(feed.pk, next_check_at, actor=actor, flaw=new_flaw, **validators):
            raise FeedGone
    if flaw:
        log.warning("ingestion.feed_flawed", feed=feed.pk, flaw=flaw)
    return checked


def _record_failure(feed: FeedSource, error: Exception, actor: str, since: datetime) -> CheckResult:
    message, code = f"Internal error in ADE: {error!r}"[:LONGEST_MESSAGE], "internal"
    if isinstance(error, FetchFailed | ReadFailed):
        message, code = str(error), error.code
    permanent = getattr(error, "permanent", False)
    if permanent:
        message += " This will not change by itself: pause or remove the feed."
    retry_after = getattr(error, "retry_after", None)
    next_check_at = check_times.after_failure(since, feed.failures + 1, retry_after=retry_after, permanent=permanent)
    log.warning("ingestion.feed_failed", feed=feed.pk, code=code, error=message)
    lifecycle.record_failure(feed, message, next_check_at, actor=actor, data={"code": code})
    return CheckResult(feed.pk, failure=message, code=code, next_check_at=next_check_at)


def _follow_move(feed: FeedSource, to: str, actor: str) -> str:
    """Update the URL of a feed after a permanent redirect. Return why that is not possible, or ""."""
    url = canonical_or_empty(to)
    if not url or url == feed.url:
        return ""
    try:
        with transaction.atomic():
            lifecycle.move(feed, url, actor=actor)
    except IntegrityError:
        return "The feed has moved to the address of another feed. Remove one of them."
    return ""


def _flaw_of(content: ParsedFeed, selection: Selection) -> str:
    flaws = []
    if content.broken:
        flaws.append(f"The syntax of the feed is broken ({content.broken}), so some of it may be missing.")
    if content.total > content.count:
        flaws.append(f"The feed has too many items; only the first {content.count} were read.")
    if selection.refused:
        flaws.append(f"Items that could not be stored: {selection.refused}. {' '.join(selection.reasons)}")
    return " ".join(flaws)
