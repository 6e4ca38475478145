"""Asks one feed for what is new, and keeps that. Safe to be done again, at any moment, by anybody: each URL is stored
once.

A feed is fetched and read without the database. What has come of it is written in one transaction, with all that is
known of the feed: whoever dies leaves it as it was before, or as it is afterwards.
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
from work.contention import patiently

# Of all that belongs to one fetch. A worker that is asked to stop waits for no longer.
FETCH_SECONDS = 20.0
LONGEST_TITLE = 300
LONGEST_MESSAGE = 1000

log = structlog.get_logger(__name__)


class FeedGone(Exception):
    """It was removed while it was being asked."""


@dataclass(frozen=True)
class Brought:
    """What a feed has answered, and what it says; that is None where nothing is new."""

    answer: Fetched
    said: Read | None


@dataclass(frozen=True)
class Checked:
    feed_id: int
    # Articles; those that there were already, or that have been purged; and those that could not be taken.
    new: int = 0
    known: int = 0
    refused: int = 0
    unchanged: bool = False
    # What of it is broken, or could not be taken.
    flaw: str = ""
    # Why it could not be read at all, and the same in one word; then nothing of it is stored.
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
    """Also when it is not due. The interval until the next check is counted from `since`."""
    return settle(feed, tried(feed), actor=actor, since=since or clock.now())


def rehearse(feed: FeedSource) -> Rehearsal:
    """Writes nothing, also for a feed that there is not yet. Raises FetchFailed and ReadFailed."""
    brought = bring(FeedSource(url=feed.url))
    assert brought.said
    found = sort(feed, spell(brought.said.items()))
    return Rehearsal(brought, found, _flaw(brought.said, found))


def tried(feed: FeedSource, stop: Callable[[], str | None] = lambda: None) -> Brought | Exception:
    """What it brings, or why it does not. Asks no database. Raises Interrupted when `stop` has given a reason."""
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
    """Raises FetchFailed; ReadFailed; Interrupted when `stop` has given a reason."""
    answer = fetch(feed.url, etag=feed.etag, last_modified=feed.last_modified, seconds=FETCH_SECONDS)
    if answer.unchanged:
        return Brought(answer, None)
    said = read(answer.body, answer.url, answer.content_type, stop=stop)
    return Brought(replace(answer, body=b""), said)


def settle(feed: FeedSource, brought: Brought | Exception, *, actor: str, since: datetime) -> Checked:
    """Writes down what has come of it. Raises what the database says when it is not there."""
    failpoints.hit("ingestion.fetched")
    if isinstance(brought, Exception):
        return _failed(feed, brought, actor, since)
    try:
        spelled = spell(brought.said.items() if brought.said else ())
        return patiently(lambda: _kept(feed, brought, spelled, actor, since))
    except FeedGone:
        return Checked(feed.pk, failure="expected a feed, found that it has been removed meanwhile", code="removed")
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        # One that ADE fails at keeps nobody from the others.
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
    """What is broken may have been cut off: asked with its ETag, its server would never send the rest."""
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
        flaw="; ".join(filter(None, (moved, _flaw(said, found)))),
        next_check_at=rhythm.after_answer(since, said.ttl_seconds),
    )


def _failed(feed: FeedSource, error: Exception, actor: str, since: datetime) -> Checked:
    message, code = f"ADE itself failed: {error!r}"[:LONGEST_MESSAGE], "internal"
    if isinstance(error, FetchFailed | ReadFailed):
        message, code = str(error), error.code
    permanent = getattr(error, "permanent", False)
    if permanent:
        message += "; it will not come back by itself: pause or remove the feed"
    retry_after = getattr(error, "retry_after", None)
    next_check_at = rhythm.after_failure(since, feed.failures + 1, retry_after=retry_after, permanent=permanent)
    log.warning("ingestion.feed_failed", feed=feed.pk, code=code, error=message)
    lifecycle.failed(feed, message, next_check_at, actor=actor, data={"code": code})
    return Checked(feed.pk, failure=message, code=code, next_check_at=next_check_at)


def _moved(feed: FeedSource, to: str, actor: str) -> str:
    """Where its server says that it lies from now on, it is asked from now on. Answers why not."""
    url = _on_the_web(to)
    if not url or url == feed.url:
        return ""
    try:
        with transaction.atomic():
            lifecycle.move(feed, url, actor=actor)
    except IntegrityError:
        return "it has moved to the address of another feed: remove one of them"
    return ""


def _on_the_web(url: str) -> str:
    """In one spelling; "" for what is no address."""
    try:
        return canonical(url)
    except BadUrl:
        return ""


def _flaw(said: Read, found: Sorted) -> str:
    return "; ".join(_flaws(said, found))


def _flaws(said: Read, found: Sorted) -> Iterator[str]:
    if said.broken:
        yield f"its syntax is broken, and read was what could be ({said.broken})"
    if said.found > said.count:
        yield f"it has more items than are read of one feed, and only its first {said.count} were"
    if found.refused:
        yield f"{found.refused} of its items could not be taken: {'; '.join(found.reasons)}"
