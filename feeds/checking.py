"""Fetches one feed and stores its new articles. It can be repeated at any moment and by several workers, because each
URL is stored once.

A feed is fetched and parsed without touching the database. The result is written in one transaction, together with
the state of the feed: if the worker dies, nothing is half stored.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from feeds import lifecycle, rhythm
from feeds.addresses import BadUrl, canonical
from feeds.fetching import Fetched, FetchFailed, fetch
from feeds.models import FeedSource
from feeds.reading import Read, ReadFailed, read
from feeds.storing import Sorted, Spelled, sort, spell, store
from work import clock, failpoints
from work.claims import Interrupted
from work.sql.contention import patiently

# Time for the whole fetch. A worker that is asked to stop waits no longer than this.
FETCH_SECONDS = 20.0
LONGEST_TITLE = 300
LONGEST_MESSAGE = 1000

log = structlog.get_logger(__name__)


class FeedGone(Exception):
    """The feed was removed while it was being fetched."""


@dataclass(frozen=True)
class Brought:
    """The response of a feed and its parsed content. `said` is None if the server answered that nothing is new."""

    answer: Fetched
    said: Read | None


@dataclass(frozen=True)
class Checked:
    feed_id: int
    # Numbers of articles: new; already stored or purged; could not be stored.
    new: int = 0
    known: int = 0
    refused: int = 0
    unchanged: bool = False
    # Sentences that say what is broken in the feed, or which items could not be stored.
    flaw: str = ""
    # Why the feed could not be read at all, as a message and a code; then nothing of it is stored.
    failure: str = ""
    code: str = ""
    next_check_at: datetime | None = None


@dataclass(frozen=True)
class Rehearsal:
    """What a check would find now."""

    brought: Brought
    sorted: Sorted = field(default_factory=Sorted)
    flaw: str = ""


def check(feed: FeedSource, *, actor: str, since: datetime | None = None) -> Checked:
    """Fetch and store a feed, even if it is not due. The next check is scheduled from `since`."""
    return settle(feed, tried(feed), actor=actor, since=since or clock.now())


def rehearse(feed: FeedSource) -> Rehearsal:
    """Return what a check would find, without writing. `feed` may be unsaved. Raises FetchFailed and ReadFailed."""
    brought = bring(FeedSource(url=feed.url))
    assert brought.said
    found = sort(feed, spell(brought.said.items()))
    return Rehearsal(brought, found, _flaw(brought.said, found))


def tried(feed: FeedSource, stop: Callable[[], str | None] = lambda: None) -> Brought | Exception:
    """Fetch a feed and return the result or the error. Uses no database. Raises Interrupted if `stop` returned a
    reason.
    """
    try:
        return bring(feed, stop)
    except Interrupted:
        raise
    except (FetchFailed, ReadFailed) as error:
        return error
    except Exception as error:
        log.exception("ingestion.broken", feed=feed.pk)
        return error


def bring(feed: FeedSource, stop: Callable[[], str | None] = lambda: None) -> Brought:
    """Fetch and parse a feed. Raises FetchFailed, ReadFailed, or Interrupted if `stop` returned a reason."""
    answer = fetch(feed.url, etag=feed.etag, last_modified=feed.last_modified, seconds=FETCH_SECONDS)
    if answer.unchanged:
        return Brought(answer, None)
    said = read(answer.body, answer.url, answer.content_type, stop=stop)
    return Brought(replace(answer, body=b""), said)


def settle(feed: FeedSource, brought: Brought | Exception, *, actor: str, since: datetime) -> Checked:
    """Store the result of a fetch. Raises the database's error if the database is unavailable."""
    failpoints.hit("ingestion.fetched")
    if isinstance(brought, Exception):
        return _failed(feed, brought, actor, since)
    try:
        spelled = spell(brought.said.items() if brought.said else ())
        return patiently(lambda: _kept(feed, brought, spelled, actor, since))
    except FeedGone:
        return Checked(feed.pk, failure="The feed was removed while it was being checked.", code="removed")
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        # A bug that one feed triggers must not stop the others.
        log.exception("ingestion.broken", feed=feed.pk)
        return _failed(feed, error, actor, since)


def _kept(feed: FeedSource, brought: Brought, spelled: Spelled, actor: str, since: datetime) -> Checked:
    said = brought.said
    with failpoints.inside("ingestion.stored"), transaction.atomic():
        moved = _moved(feed, brought.answer.moved_to, actor)
        checked = _stored(feed, said, spelled, moved, since) if said else _unchanged(feed, moved, since)
        told = _validators(brought)
        flaw = (checked.flaw or None) if checked.unchanged else checked.flaw
        assert checked.next_check_at
        if not lifecycle.answered(feed.pk, checked.next_check_at, actor=actor, flaw=flaw, **told):
            raise FeedGone
    if checked.flaw:
        log.warning("ingestion.feed_flawed", feed=feed.pk, flaw=checked.flaw)
    return checked


def _validators(brought: Brought) -> dict[str, str]:
    """Return the cache validators to store. A broken feed may have been cut off; with its ETag, the server would
    answer "not modified" and never send the rest.
    """
    if brought.said and brought.said.broken:
        return {"etag": "", "last_modified": ""}
    return {"etag": brought.answer.etag, "last_modified": brought.answer.last_modified}


def _unchanged(feed: FeedSource, moved: str, since: datetime) -> Checked:
    return Checked(feed.pk, unchanged=True, flaw=moved, next_check_at=rhythm.after_answer(since))


def _stored(feed: FeedSource, said: Read, spelled: Spelled, moved: str, since: datetime) -> Checked:
    found = sort(feed, spelled)
    new = store(found)
    lifecycle.introduce(feed.pk, title=said.title[:LONGEST_TITLE], site_url=_on_the_web(said.site_url))
    return Checked(
        feed.pk,
        new=new,
        known=found.known,
        refused=found.refused,
        flaw=" ".join(filter(None, (moved, _flaw(said, found)))),
        next_check_at=rhythm.after_answer(since, said.ttl_seconds),
    )


def _failed(feed: FeedSource, error: Exception, actor: str, since: datetime) -> Checked:
    message, code = f"Internal error in ADE: {error!r}"[:LONGEST_MESSAGE], "internal"
    if isinstance(error, FetchFailed | ReadFailed):
        message, code = str(error), error.code
    permanent = getattr(error, "permanent", False)
    if permanent:
        message += " This will not change by itself: pause or remove the feed."
    retry_after = getattr(error, "retry_after", None)
    next_check_at = rhythm.after_failure(since, feed.failures + 1, retry_after=retry_after, permanent=permanent)
    log.warning("ingestion.feed_failed", feed=feed.pk, code=code, error=message)
    lifecycle.failed(feed, message, next_check_at, actor=actor, data={"code": code})
    return Checked(feed.pk, failure=message, code=code, next_check_at=next_check_at)


def _moved(feed: FeedSource, to: str, actor: str) -> str:
    """Update the URL of a feed after a permanent redirect. Return why that is not possible, or ""."""
    url = _on_the_web(to)
    if not url or url == feed.url:
        return ""
    try:
        with transaction.atomic():
            lifecycle.move(feed, url, actor=actor)
    except IntegrityError:
        return "The feed has moved to the address of another feed. Remove one of them."
    return ""


def _on_the_web(url: str) -> str:
    """Return the canonical spelling, or "" if it is not a web address."""
    try:
        return canonical(url)
    except BadUrl:
        return ""


def _flaw(said: Read, found: Sorted) -> str:
    return " ".join(_flaws(said, found))


def _flaws(said: Read, found: Sorted) -> Iterator[str]:
    if said.broken:
        yield f"The syntax of the feed is broken ({said.broken}), so some of it may be missing."
    if said.found > said.count:
        yield f"The feed has too many items; only the first {said.count} were read."
    if found.refused:
        yield f"Items that could not be stored: {found.refused}. {' '.join(found.reasons)}"
