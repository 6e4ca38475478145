"""Finds which articles and events are news for a brief."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import Q, QuerySet

from feeds.briefs.formatting import site
from feeds.briefs.ranking import Event
from feeds.models import Brief, BriefItem, ClusterArticle, EventCluster, FeedSource
from work import clock

# The length of the very first brief's window.
FIRST_WINDOW = timedelta(hours=24)
# After a longer break, a reader wants today's news. Older events can be found elsewhere in ADE.
LONGEST_WINDOW = timedelta(hours=72)
# A newly added feed may bring articles from last year, which are not news.
OLDEST_NEWS = timedelta(hours=72)
# Windows overlap by this much. Otherwise a link that another transaction commits just after a brief was made would be
# in neither brief.
OVERLAP = timedelta(minutes=10)
# For an event that was in an earlier brief: an article that was seen longer than this before the end of that brief's
# window is not news. It was only moved between clusters.
CLUSTERED_WITHIN = timedelta(hours=1)
# How long readers are assumed to remember an earlier brief.
REMEMBERED = timedelta(days=7)


@dataclass(frozen=True)
class Window:
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Link:
    """The link of an article to its cluster, with the times that decide whether it is news."""

    cluster_id: int
    article_id: int
    feed_id: int
    similarity: float
    happened_at: datetime
    seen_at: datetime
    linked_at: datetime


COLUMNS = (
    *("cluster", "raw_article", "raw_article__feed", "similarity", "raw_article__happened_at"),
    *("raw_article__seen_at", "linked_at"),
)


def window_of(slot: datetime) -> Window:
    """Return the window of a brief. It starts where the previous one ended, so that no event is missed or repeated."""
    # A slot may be triggered by hand before its time. Articles that arrive between now and the slot belong to the next
    # brief.
    until = min(slot, clock.now())
    previous = Brief.objects.filter(scheduled_for__lt=slot).order_by("-scheduled_for").first()
    since = max(previous.window_until, until - LONGEST_WINDOW) if previous else until - FIRST_WINDOW
    return Window(min(since, until), until)


class News:
    """The news of a window, and the earlier briefs that already covered the same events."""

    def __init__(self, window: Window) -> None:
        self.window = window
        # The last brief of each cluster.
        self.earlier_briefs = _earlier_briefs(window)
        self._sites = {pk: site(url) for pk, url in FeedSource.objects.values_list("pk", "site_url")}

    def source_of(self, feed_id: int) -> str:
        """Return the source of a feed. Feeds of the same site count as one source."""
        return self._sites.get(feed_id) or f"feed {feed_id}"

    def events(self) -> Iterator[Event]:
        # The part of `is_new` that the database can decide. It does not consider earlier briefs yet.
        fresh = Q(raw_article__happened_at__gt=self.window.until - OLDEST_NEWS)
        fresh &= Q(linked_at__gt=self.window.since - OVERLAP)
        clusters = self._links().filter(fresh).values("cluster")
        rows = self._links().filter(cluster__in=clusters).order_by("cluster").values_list(*COLUMNS).iterator()
        for cluster_id, group in groupby((Link(*row) for row in rows), lambda link: link.cluster_id):
            links = list(group)
            new = [link for link in links if self.is_new(link)]
            if new:
                yield Event(
                    cluster_id,
                    began_at=min(link.happened_at for link in links),
                    articles=Counter(self.source_of(link.feed_id) for link in links),
                    news=Counter(self.source_of(link.feed_id) for link in new),
                    first_news_at=min(link.happened_at for link in new),
                    nearness=sum(link.similarity for link in links) / len(links),
                )

    def links_of(self, cluster_ids: Iterable[int]) -> dict[int, list[Link]]:
        links = defaultdict(list)
        for row in self._links().filter(cluster__in=list(cluster_ids)).values_list(*COLUMNS):
            links[row[0]].append(Link(*row))
        return links

    def is_new(self, link: Link) -> bool:
        earlier = self.earlier_briefs.get(link.cluster_id)
        fresh = link.linked_at > self.window.since - OVERLAP and link.happened_at > self.window.until - OLDEST_NEWS
        if earlier is None or not fresh:
            return fresh
        return link.linked_at > earlier.window_until and link.seen_at > earlier.window_until - CLUSTERED_WITHIN

    def _links(self) -> QuerySet[ClusterArticle]:
        return ClusterArticle.objects.filter(linked_at__lte=self.window.until, cluster__merged_into__isnull=True)


def _earlier_briefs(window: Window) -> dict[int, Brief]:
    """Return the last brief that covered each cluster, or a cluster that was merged into it."""
    items = BriefItem.objects.filter(brief__window_until__lte=window.since).select_related("brief")
    recent = items.filter(brief__window_until__gt=window.since - REMEMBERED).order_by("brief__window_until")
    briefs = {item.cluster_id: item.brief for item in recent}
    followed: set[int] = set()
    while left := briefs.keys() - followed:
        followed |= left
        merged = EventCluster.objects.filter(pk__in=left, merged_into__isnull=False)
        for part, whole in merged.values_list("pk", "merged_into"):
            assert whole is not None
            candidates = (briefs[part], briefs.get(whole, briefs[part]))
            briefs[whole] = max(candidates, key=lambda brief: brief.window_until)
    return briefs
