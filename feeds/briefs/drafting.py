"""Chooses the contents of a brief: the highest-ranked events with news become its items, each with some of its
articles.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from feeds.briefs import ranking
from feeds.briefs.formatting import beginning, count, line, site
from feeds.briefs.news import Link, News, window_of
from feeds.briefs.ranking import RankedEvent
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
    seen = RawArticle.objects.filter(seen_at__gt=window.since, seen_at__lte=window.until)
    has_answered = Q(succeeded_at__gt=window.since)
    # A failing feed counts as asked, even if it was backing off during the whole window.
    is_asked = Q(checked_at__gt=window.since) | Q(failures__gt=0)
    feeds = FeedSource.objects.all()
    answers = feeds.filter(succeeded_at__isnull=False).order_by("-succeeded_at").values_list("succeeded_at", flat=True)
    brief = {
        "scheduled_for": slot,
        "window_from": window.since,
        "window_until": window.until,
        "clusters_seen": len(ranked),
        "articles_seen": seen.count(),
        "feeds_seen": feeds.filter(has_answered).count(),
        "feeds_silent": feeds.filter(is_asked, paused_at__isnull=True).exclude(has_answered).count(),
        "last_answer_at": answers.first(),
    }
    return Draft(brief, _items(ranked[:MOST_ITEMS], news))


def _items(ranked: Sequence[RankedEvent], news: News) -> list[tuple[Values, list[Values]]]:
    ids = [each.event.cluster_id for each in ranked]
    titles = dict(EventCluster.objects.filter(pk__in=ids).values_list("pk", "title"))
    links = news.links_of(ids)
    links_by_id = {id: _choose(links[id], news) for id in ids}
    articles = RawArticle.objects.filter(pk__in=[link.article_id for each in links_by_id.values() for link in each])
    article_of = {each.pk: each for each in articles.select_related("feed").defer("embedding", "original_url")}
    items = []
    for position, each in enumerate(ranked):
        id, reasons = each.event.cluster_id, each.reasons
        shown = [link for link in links_by_id[id] if link.article_id in article_of]
        # Show the beginning of a summary, from the most central article that has one.
        texts = (article_of[link.article_id].summary for link in sorted(shown, key=_centrality))
        summaries = (beginning(text, SUMMARY_CHARACTERS) for text in texts)
        if earlier := news.earlier_briefs.get(id):
            new = count(sum(each.event.news.values()), "new article")
            words = f"also in the brief of {earlier.name}, {new} since"
            reasons.append({"name": "told", "words": words, "share": 0.0, "brief": earlier.name})
        item = {
            "position": position,
            "cluster_id": id,
            "headline": _title(titles.get(id, "")),
            "summary": next(filter(None, summaries), ""),
            "article_count": sum(each.event.articles.values()),
            "score": each.score,
            "reasons": reasons,
        }
        article_values = [
            {
                "position": place,
                "raw_article_id": article.pk,
                "url": article.url,
                "title": _title(article.title),
                "source": line(article.feed.title, 300) or site(article.feed.url) or line(article.feed.url, 300),
                "happened_at": article.happened_at,
            }
            for place, article in enumerate(article_of[link.article_id] for link in shown)
        ]
        items.append((item, article_values))
    return items


def _choose(links: Iterable[Link], news: News) -> list[Link]:
    """Take one article of each source first, then a second of each. Within a round, new articles come first, then
    central ones.
    """
    taken: dict[str, int] = defaultdict(int)
    rounds: dict[int, list[Link]] = defaultdict(list)
    for link in sorted(links, key=lambda link: (not news.is_new(link), *_centrality(link))):
        source = news.source_of(link.feed_id)
        rounds[taken[source]].append(link)
        taken[source] += 1
    return [link for _, several in sorted(rounds.items()) for link in several][:MOST_ARTICLES]


def _centrality(link: Link) -> tuple[Any, ...]:
    return (-link.similarity, link.happened_at, link.article_id)


def _title(text: str) -> str:
    return line(text, 500) or "(no title)"
