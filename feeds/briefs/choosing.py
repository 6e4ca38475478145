"""Chooses the contents of a brief: the events with news, the highest ranked of them as items, and some articles of
each.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from feeds.briefs import ranking
from feeds.briefs.news import Link, News, Window, window_of
from feeds.briefs.ranking import Ranked
from feeds.briefs.words import beginning, count, line, site
from feeds.models import EventCluster, FeedSource, RawArticle

MOST_ITEMS = 10
MOST_ARTICLES = 5
SUMMARY_CHARACTERS = 400

Values = dict[str, Any]


@dataclass(frozen=True)
class Draft:
    """The column values of a brief, of its items, and of the articles of each item."""

    brief: Values
    items: list[tuple[Values, list[Values]]]

    @property
    def cluster_ids(self) -> set[int]:
        return {item["cluster_id"] for item, _ in self.items}

    @property
    def article_ids(self) -> set[int]:
        return {article["raw_article_id"] for _, articles in self.items for article in articles}


def draft(slot: datetime) -> Draft:
    window = window_of(slot)
    news = News(window)
    ranked = ranking.rank(news.events(), window.until)
    return Draft(
        {
            "scheduled_for": slot,
            "window_from": window.since,
            "window_until": window.until,
            "clusters_seen": len(ranked),
            **_state_of_feeds(window),
        },
        _items(ranked[:MOST_ITEMS], news),
    )


def _state_of_feeds(window: Window) -> Values:
    seen = RawArticle.objects.filter(seen_at__gt=window.since, seen_at__lte=window.until)
    has_answered = Q(succeeded_at__gt=window.since)
    # A failing feed counts as asked, even if it was backing off during the whole window.
    was_asked = Q(checked_at__gt=window.since) | Q(failures__gt=0)
    feeds = FeedSource.objects.all()
    last = feeds.filter(succeeded_at__isnull=False).order_by("-succeeded_at").values_list("succeeded_at", flat=True)
    return {
        "articles_seen": seen.count(),
        "feeds_seen": feeds.filter(has_answered).count(),
        "feeds_silent": feeds.filter(was_asked, paused_at__isnull=True).exclude(has_answered).count(),
        "last_answer_at": last.first(),
    }


def _items(ranked: Sequence[Ranked], news: News) -> list[tuple[Values, list[Values]]]:
    ids = [each.event.cluster_id for each in ranked]
    titles = dict(EventCluster.objects.filter(pk__in=ids).values_list("pk", "title"))
    links = news.links_of(ids)
    chosen = {id: _chosen(links[id], news) for id in ids}
    articles = _articles(link.article_id for each in chosen.values() for link in each)
    items = []
    for position, each in enumerate(ranked):
        id = each.event.cluster_id
        shown = [link for link in chosen[id] if link.article_id in articles]
        values = {
            "position": position,
            "cluster_id": id,
            "headline": _title(titles.get(id, "")),
            "summary": _summary(shown, articles),
            "article_count": sum(each.event.articles.values()),
            "score": each.score,
            "reasons": each.reasons + _reminder(each, news),
        }
        items.append((values, [_columns(n, articles[link.article_id]) for n, link in enumerate(shown)]))
    return items


def _chosen(links: Iterable[Link], news: News) -> list[Link]:
    """Take one article of each source first, then a second of each. Within a round, new articles come first, then
    central ones.
    """
    seen: dict[str, int] = defaultdict(int)
    rounds: dict[int, list[Link]] = defaultdict(list)
    for each in sorted(links, key=lambda each: (not news.is_new(each), *_centrality(each))):
        source = news.source_of(each.feed_id)
        rounds[seen[source]].append(each)
        seen[source] += 1
    return [each for _, several in sorted(rounds.items()) for each in several][:MOST_ARTICLES]


def _centrality(link: Link) -> tuple[Any, ...]:
    return (-link.similarity, link.happened_at, link.article_id)


def _articles(ids: Iterable[int]) -> dict[int, RawArticle]:
    found = RawArticle.objects.filter(pk__in=list(ids)).select_related("feed")
    return {article.pk: article for article in found.defer("embedding", "original_url")}


def _summary(shown: Sequence[Link], articles: Mapping[int, RawArticle]) -> str:
    """Return the beginning of the summary of the most central article that has one."""
    central = sorted(shown, key=_centrality)
    summaries = (beginning(articles[each.article_id].summary, SUMMARY_CHARACTERS) for each in central)
    return next(filter(None, summaries), "")


def _reminder(ranked: Ranked, news: News) -> list[Values]:
    told = news.told.get(ranked.event.cluster_id)
    if told is None:
        return []
    new = count(sum(ranked.event.news.values()), "new article")
    words = f"also in the brief of {told.name}, {new} since"
    return [{"name": "told", "words": words, "share": 0.0, "brief": told.name}]


def _columns(position: int, article: RawArticle) -> Values:
    return {
        "position": position,
        "raw_article_id": article.pk,
        "url": article.url,
        "title": _title(article.title),
        "source": line(article.feed.title, 300) or site(article.feed.url) or line(article.feed.url, 300),
        "happened_at": article.happened_at,
    }


def _title(text: str) -> str:
    return line(text, 500) or "(no title)"
