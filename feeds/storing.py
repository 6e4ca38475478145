"""Stores the items of a feed as articles. Each URL is stored once, also if several feeds or workers bring it at the
same time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from django.db import DataError, IntegrityError, transaction

from feeds.addresses import BadUrl, canonical, digest, shown
from feeds.models import FeedSource, PurgedUrl, RawArticle
from feeds.reading import Item
from work import clock

# Rows per statement; every database takes this many.
AT_ONCE = 500
# How many refusals are reported with their reason.
MOST_REASONS = 3
_LONGEST_REASON = 300
# Dates near the epoch come from clocks that were never set; they and dates in the far future are ignored.
EARLIEST = datetime(1970, 1, 3, tzinfo=UTC)
LATEST = timedelta(days=366)

T = TypeVar("T")


@dataclass
class Refusals:
    """The number of refused items, and the reasons of the first few."""

    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, title: str, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(f"{shown(title)}: {reason}"[:_LONGEST_REASON])


@dataclass
class Spelled(Refusals):
    """The items of a feed by canonical URL."""

    items: dict[str, Item] = field(default_factory=dict)
    again: int = 0


@dataclass
class Sorted(Refusals):
    """The items of a feed: already known, new, or refused."""

    new: list[RawArticle] = field(default_factory=list)
    known: int = 0


def spell(items: Iterable[Item]) -> Spelled:
    """Group items by canonical URL. This uses no database and belongs outside of transactions, because the feed
    controls how long it takes.
    """
    found = Spelled()
    for item in items:
        try:
            url = _url(item)
        except BadUrl as error:
            found.refuse(item.title, str(error))
            continue
        found.again += url in found.items
        found.items.setdefault(url, item)
    return found


def sort(feed: FeedSource, spelled: Spelled) -> Sorted:
    """Return which items are new. Writes nothing."""
    # The order matters: an article that is purged between the two queries is found by the second.
    there = _there(spelled.items)
    there |= _purged(spelled.items.keys() - there)
    now = clock.now()
    # Sorted, so that two feeds with the same articles can't deadlock.
    new = [_article(feed, url, spelled.items[url], now) for url in sorted(spelled.items.keys() - there)]
    return Sorted(spelled.refused, [*spelled.reasons], new, known=spelled.again + len(there))


def store(found: Sorted) -> int:
    """Store the new articles in the caller's transaction. Return how many were new; articles that others stored
    meanwhile count as known.
    """
    stored = 0
    for batch in _batches(found.new):
        try:
            with transaction.atomic():
                stored += len(RawArticle.objects.bulk_create(batch))
        except (IntegrityError, DataError, ValueError):
            stored += sum(_stored(article, found) for article in batch)
    return stored


def _url(item: Item) -> str:
    """Return the canonical URL of an item. Raises BadUrl."""
    if not item.url:
        raise BadUrl("The item has no link to an article.")
    return canonical(item.url)


def _article(feed: FeedSource, url: str, item: Item, now: datetime) -> RawArticle:
    published_at = _moment(item.published, now)
    return RawArticle(
        feed_id=feed.pk,
        url=url,
        original_url=item.url,
        title=item.title or shown(item.url).strip("'\""),
        summary=item.summary,
        author=item.author,
        published_at=published_at,
        seen_at=now,
        happened_at=min(published_at or now, now),
    )


def _moment(seconds: int | None, now: datetime) -> datetime | None:
    if seconds is None or not EARLIEST.timestamp() <= seconds <= (now + LATEST).timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _stored(article: RawArticle, found: Sorted) -> bool:
    """Store one article by itself, so that a bad one doesn't lose the others."""
    article.pk = None
    try:
        with transaction.atomic():
            RawArticle.objects.bulk_create([article])
    except (IntegrityError, DataError, ValueError) as error:
        if RawArticle.objects.filter(url=article.url).exists():
            found.known += 1
        else:
            found.refuse(article.title, f"The database rejected the article: {str(error).partition(chr(10))[0]}.")
        return False
    return True


def _there(urls: Iterable[str]) -> set[str]:
    articles = RawArticle.objects.values_list("url", flat=True)
    return set(_in_batches(urls, lambda batch: articles.filter(url__in=batch)))


def _purged(urls: Iterable[str]) -> set[str]:
    digests = {digest(url): url for url in urls}
    purged = PurgedUrl.objects.values_list("digest", flat=True)
    return {digests[each] for each in _in_batches(digests, lambda batch: purged.filter(digest__in=batch))}


def _in_batches(names: Iterable[str], ask: Callable[[list[str]], Iterable[str]]) -> Iterator[str]:
    for batch in _batches(names):
        yield from ask(batch)


def _batches(all_of_them: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(all_of_them)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch
