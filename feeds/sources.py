"""The actions of operators on feeds. Each is recorded in the history of the feed with its actor."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from feeds import fetching, lifecycle
from feeds.addresses import BadUrl, canonical
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
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
_JOINERS = "\u200c\u200d"


class NotAdded(Exception):
    """The feed can't be added. The code is for programs and stable; the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AlreadyThere(NotAdded):
    def __init__(self, feed: FeedSource) -> None:
        super().__init__(ALREADY_THERE, f"This URL already belongs to feed {feed.pk} ({feed}).")
        self.feed = feed


@dataclass(frozen=True)
class Imported:
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
    spelled = addable(url)
    try:
        with transaction.atomic():
            return lifecycle.add(spelled, title=one_line(title), site_url=_page(site_url), actor=actor)
    except IntegrityError:
        # Another request added it first.
        addable(url)
        raise


def addable(url: str) -> str:
    """Return the canonical URL if the feed could be added now. Raises NotAdded."""
    spelled = spelling(url)
    if there := FeedSource.objects.filter(url=spelled).first():
        raise AlreadyThere(there)
    return spelled


def spelling(url: str) -> str:
    """Return the canonical spelling of a URL that could be fetched, without resolving its host. Raises NotAdded."""
    try:
        spelled = canonical(_unmarked(url.strip()))
        fetching.reach().expect(target_of(spelled))
    except BadUrl as error:
        raise NotAdded("bad_url", str(error)) from error
    except FetchFailed as error:
        raise NotAdded(error.code, str(error)) from error
    return spelled


def take_in(entries: Iterable[Entry], *, actor: str, rehearse: bool = False) -> Iterator[Imported]:
    """Add the entries one by one; a refused entry does not affect the others."""
    lines: dict[str, int | None] = {}
    for entry in entries:
        try:
            spelled = spelling(entry.url)
            if spelled in lines:
                yield Imported(entry, TWICE, message=f"This is the same feed as in line {lines[spelled]}.")
                continue
            lines[spelled] = entry.line
            yield Imported(entry, ADDED, _taken_in(entry, actor=actor, rehearse=rehearse))
        except AlreadyThere as refused:
            yield Imported(entry, refused.code, refused.feed.pk, str(refused))
        except NotAdded as refused:
            yield Imported(entry, refused.code, message=str(refused))


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
    """Remove a feed without articles. Others can only be paused, because briefs may refer to their articles."""
    return Outcome.REMOVED if lifecycle.remove(feed.pk, actor=actor) else _not_done(feed, Outcome.HAS_ARTICLES)


def one_line(title: str) -> str:
    """Return the title without line breaks and invisible characters, fit for a list and a history."""
    spaced = "".join(" " if c.isspace() else c for c in title)
    seen = "".join(c for c in spaced if unicodedata.category(c) not in _UNSEEN or c in _JOINERS)
    return " ".join(seen.split())[:LONGEST_TITLE].strip()


def _taken_in(entry: Entry, *, actor: str, rehearse: bool) -> int | None:
    if rehearse:
        addable(entry.url)
        return None
    return add(entry.url, title=entry.title, site_url=entry.site_url, actor=actor).pk


def _unmarked(url: str) -> str:
    """Strip the feed: scheme. Some readers and browsers write feed://HOST/PATH or feed:https://HOST/PATH."""
    mark, rest = url[:5], url[5:]
    if mark.lower() != "feed:":
        return url
    return f"http:{rest}" if rest.startswith("//") else rest


def _page(url: str) -> str:
    """Return the URL if it is a web address that people can follow, else ""."""
    try:
        return canonical(url)
    except BadUrl:
        return ""


def _not_done(feed: FeedSource, why: Outcome) -> Outcome:
    return why if FeedSource.objects.filter(pk=feed.pk).exists() else Outcome.NOT_FOUND
