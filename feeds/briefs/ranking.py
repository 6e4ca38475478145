"""Ranks events for a brief. The score of an event is the sum of several parts, and at most 1. Each part comes with an
explanation in words, so that readers can check the ranking.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from feeds.briefs.formatting import count, span

# The maximum of each part of the score. Together they are 1.
SOURCES, ARTICLES, FRESHNESS, GROWTH, NEARNESS, SECOND_SOURCE = 0.40, 0.20, 0.15, 0.10, 0.10, 0.05
# At this number (beyond the first) a part reaches half of its maximum. Twice the number does not double the part.
HALF_SOURCES = 3
HALF_ARTICLES = 6
HALF_AN_HOUR = 1.0
HALF_LIFE = timedelta(hours=24)
# More articles from one source mean that the source is busy, not that more has happened.
MOST_OF_A_SOURCE = 3
# Smaller differences come from how processors round.
DIGITS = 4


@dataclass(frozen=True)
class Event:
    cluster_id: int
    began_at: datetime
    # Number of articles per source: all articles, and only the new ones.
    articles: Mapping[str, int]
    news: Mapping[str, int]
    first_news_at: datetime
    # Average similarity of the articles to the centre of their cluster.
    nearness: float


@dataclass(frozen=True)
class Part:
    name: str
    words: str
    share: float


@dataclass(frozen=True)
class RankedEvent:
    event: Event
    score: float
    parts: tuple[Part, ...]

    @property
    def reasons(self) -> list[dict[str, Any]]:
        return [asdict(part) for part in self.parts]

    @property
    def order(self) -> tuple[Any, ...]:
        event = self.event
        return (-self.score, -len(event.news), -sum(event.news.values()), event.began_at, event.cluster_id)


def rank(events: Iterable[Event], until: datetime) -> list[RankedEvent]:
    """Return the events by score, highest first. The order is deterministic."""
    ranked = []
    for event in events:
        parts = tuple(Part(part.name, part.words, round(part.share, DIGITS)) for part in _parts_of(event, until))
        ranked.append(RankedEvent(event, round(sum(part.share for part in parts), DIGITS), parts))
    return sorted(ranked, key=lambda each: each.order)


def _parts_of(event: Event, until: datetime) -> Iterator[Part]:
    new, total = sum(event.news.values()), sum(event.articles.values())
    number = sum(min(of_source, MOST_OF_A_SOURCE) for of_source in event.news.values())

    words = f"{count(new, 'article' if new == total else 'new article')} from {count(len(event.news), 'source')}"
    words += f", of which {number} count" if number < new else ""
    words += f", {total:,} in all" if new < total else ""
    share = SOURCES * _saturation(len(event.news) - 1, HALF_SOURCES) + ARTICLES * _saturation(number - 1, HALF_ARTICLES)
    yield Part("coverage", words, share)

    age = max(until - event.began_at, timedelta())
    yield Part("freshness", f"began {span(age)} earlier", FRESHNESS * 0.5 ** (age / HALF_LIFE))

    if number >= 2:
        # In the first hour there is too little time to measure a rate.
        an_hour = number / max((until - event.first_news_at) / timedelta(hours=1), 1)
        yield Part("growth", f"grows by {an_hour:.2g} articles an hour", GROWTH * _saturation(an_hour, HALF_AN_HOUR))

    if total >= 2:
        near = min(max(event.nearness, 0.0), 1.0)
        yield Part("nearness", f"its articles are {near:.0%} similar", NEARNESS * near)

    before = {source for source, number in event.articles.items() if number > event.news.get(source, 0)}
    if len(before) == 1 and not set(event.news) <= before:
        yield Part("second source", "reported by more than one source for the first time", SECOND_SOURCE)


def _saturation(number: float, half: float) -> float:
    return number / (number + half)
