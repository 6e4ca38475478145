"""Stores the items of a feed as articles. Each URL is stored once, even if several feeds or workers bring it at the
same time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from django.db import DataError, IntegrityError, transaction

from feeds.addresses import BadUrl, canonical, digest, excerpt
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
            self.reasons.append(f"{excerpt(title)}: {reason}"[:_LONGEST_REASON])


@dataclass
class ItemsByUrl(Refusals):
    """The items of a feed by canonical URL."""

    items: dict[str, Item] = field(default_factory=dict)
    duplicates: int = 0


@dataclass
class Selection(Refusals):
    """The items of a feed: already known, new, or refused."""

    new: list[RawArticle] = field(default_factory=list)
    known: int = 0


def group_by_url(items: Iterable[Item]) -> ItemsByUrl:
    """Group items by canonical URL. This uses no database and belongs outside of transactions, because the feed
    controls how long it takes.
    """
    grouped = ItemsByUrl()
    for item in items:
        try:
            if not item.url:
                raise BadUrl("The item has no link to an article.")
            url = canonical(item.url)
        except BadUrl as error:
            grouped.refuse(item.title, str(error))
            continue
        grouped.duplicates += url in grouped.items
        grouped.items.setdefault(url, item)
    return grouped


def select_new(feed: FeedSource, grouped: ItemsByUrl) -> Selection:
    """Return which items are new. Writes nothing."""
    items, known = grouped.items, set[str]()
    # The order matters: an article that is purged between the two queries is found by the second.
    for urls in _batches(items):
        known.update(RawArticle.objects.filter(url__in=urls).values_list("url", flat=True))
    url_of = {digest(url): url for url in items.keys() - known}
    for digests in _batches(url_of):
        purged = PurgedUrl.objects.filter(digest__in=digests).values_list("digest", flat=True)
        known.update(url_of[each] for each in purged)
    now, new = clock.now(), []
    # Sorted, so that two feeds with the same articles can't deadlock.
    for url in sorted(items.keys() - known):
        item, published_at = items[url], None
        if item.published is not None and EARLIEST.timestamp() <= item.published <= (now + LATEST).timestamp():
            published_at = datetime.fromtimestamp(item.published, UTC)
        article = RawArticle(
            feed_id=feed.pk,
            url=url,
            original_url=item.url,
            title=item.title or excerpt(item.url).strip("'\""),
            summary=item.summary,
            author=item.author,
            published_at=published_at,
            seen_at=now,
            happened_at=min(published_at or now, now),
        )
        new.append(article)
    return Selection(grouped.refused, [*grouped.reasons], new, known=grouped.duplicates + len(known))


def store(selection: Selection) -> int:
    """Store the new articles in the caller's transaction. Return how many were new; articles that other workers stored
    meanwhile count as known.
    """
    stored = 0
    for batch in _batches(selection.new):
        try:
            with transaction.atomic():
                stored += len(RawArticle.objects.bulk_create(batch))
        except (IntegrityError, DataError, ValueError):
            stored += sum(_store_one(article, selection) for article in batch)
    return stored


def _store_one(article: RawArticle, selection: Selection) -> bool:
    """Store one article by itself, so that a bad article doesn't keep the others from being stored."""
    article.pk = None
    try:
        with transaction.atomic():
            RawArticle.objects.bulk_create([article])
    except (IntegrityError, DataError, ValueError) as error:
        if RawArticle.objects.filter(url=article.url).exists():
            selection.known += 1
        else:
            selection.refuse(article.title, f"The database rejected the article: {str(error).partition(chr(10))[0]}.")
        return False
    return True


def _batches(values: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch
