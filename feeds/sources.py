"""The actions that operators perform on feeds. Each action is recorded with its actor in the feed's history."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from feeds import fetching, lifecycle
from feeds.addresses import BadUrl, canonical, canonical_or_empty
from feeds.fetching import FetchFailed
from feeds.fetching.targets import target_of
from feeds.models import FeedSource
from feeds.opml import Entry
from work.operations.outcomes import Outcome

LONGEST_TITLE = 300
ADDED = "added"
ALREADY_THERE = "already_there"
TWICE = "twice"
# Zero-width joiners are parts of words and emoji, so they are kept.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_JOINERS = "\u200c\u200d"


class NotAdded(Exception):
    """The feed can't be added. The code is for programs and never changes; the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AlreadyThere(NotAdded):
    def __init__(self, feed: FeedSource) -> None:
        super().__init__(ALREADY_THERE, f"This URL already belongs to feed {feed.pk} ({feed}).")
        self.feed = feed


@dataclass(frozen=True)
class ImportResult:
    """The result for one entry of a list: added, already_there, twice, or the code of its refusal."""

    entry: Entry
    result: str
    feed_id: int | None = None
    message: str = ""

    @property
    def is_refused(self) -> bool:
        return self.result not in (ADDED, ALREADY_THERE, TWICE)


def add(url: str, *, title: str = "", site_url: str = "", actor: str) -> FeedSource:
    """Add a feed and make it due at once. Raises NotAdded."""
    canonical_url = expect_new(url)
    try:
        with transaction.atomic():
            site_url = canonical_or_empty(site_url)
            return lifecycle.add(canonical_url, title=one_line(title), site_url=site_url, actor=actor)
    except IntegrityError:
        # Another request added it first.
        expect_new(url)
        raise


def expect_new(url: str) -> str:
    """Return the canonical URL if the feed could be added now. Raises NotAdded."""
    canonical_url = normalize(url)
    if feed := FeedSource.objects.filter(url=canonical_url).first():
        raise AlreadyThere(feed)
    return canonical_url


def normalize(url: str) -> str:
    """Return the canonical spelling of a URL that could be fetched, without resolving its host. Raises NotAdded."""
    url = url.strip()
    if url[:5].lower() == "feed:":
        # Some readers and browsers write feed://HOST/PATH or feed:https://HOST/PATH.
        url = f"http:{url[5:]}" if url[5:].startswith("//") else url[5:]
    try:
        canonical_url = canonical(url)
        fetching.reach().expect(target_of(canonical_url))
    except BadUrl as error:
        raise NotAdded("bad_url", str(error)) from error
    except FetchFailed as error:
        raise NotAdded(error.code, str(error)) from error
    return canonical_url


def import_entries(entries: Iterable[Entry], *, actor: str, rehearse: bool = False) -> Iterator[ImportResult]:
    """Add the entries one by one; a refused entry does not affect the others."""
    lines: dict[str, int | None] = {}
    for entry in entries:
        feed_id = None
        try:
            url = normalize(entry.url)
            if url in lines:
                yield ImportResult(entry, TWICE, message=f"This is the same feed as in line {lines[url]}.")
                continue
            lines[url] = entry.line
            if rehearse:
                expect_new(entry.url)
            else:
                feed_id = add(entry.url, title=entry.title, site_url=entry.site_url, actor=actor).pk
            yield ImportResult(entry, ADDED, feed_id)
        except AlreadyThere as refused:
            yield ImportResult(entry, refused.code, refused.feed.pk, str(refused))
        except NotAdded as refused:
            yield ImportResult(entry, refused.code, message=str(refused))


def entries() -> Iterator[Entry]:
    """Yield all feeds in the order in which they were added."""
    for feed in FeedSource.objects.order_by("id").iterator():
        yield Entry(feed.url, feed.title, feed.site_url)


def rename(feed: FeedSource, title: str, *, actor: str) -> Outcome:
    is_done = lifecycle.rename(feed.pk, one_line(title), actor=actor)
    return Outcome.RENAMED if is_done else _not_done(feed, Outcome.SAME_NAME)


def pause(feed: FeedSource, *, actor: str, reason: str = "") -> Outcome:
    is_done = lifecycle.pause(feed.pk, actor=actor, reason=reason)
    return Outcome.PAUSED if is_done else _not_done(feed, Outcome.WAS_PAUSED)


def resume(feed: FeedSource, *, actor: str) -> Outcome:
    return Outcome.RESUMED if lifecycle.resume(feed.pk, actor=actor) else _not_done(feed, Outcome.NOT_PAUSED)


def make_due(feed: FeedSource, *, actor: str) -> Outcome:
    return Outcome.DUE if lifecycle.ask_for_check(feed.pk, actor=actor) else _not_done(feed, Outcome.IS_PAUSED)


def remove(feed: FeedSource, *, actor: str) -> Outcome:
    """Remove a feed that has no articles. Other feeds can only be paused: briefs may refer to their articles."""
    return Outcome.REMOVED if lifecycle.remove(feed.pk, actor=actor) else _not_done(feed, Outcome.HAS_ARTICLES)


def one_line(title: str) -> str:
    """Return the title without line breaks and invisible characters, fit for a list and a history."""
    spaced = "".join(" " if c.isspace() else c for c in title)
    visible = "".join(c for c in spaced if unicodedata.category(c) not in _INVISIBLE or c in _JOINERS)
    return " ".join(visible.split())[:LONGEST_TITLE].strip()


def _not_done(feed: FeedSource, why: Outcome) -> Outcome:
    return why if FeedSource.objects.filter(pk=feed.pk).exists() else Outcome.NOT_FOUND
