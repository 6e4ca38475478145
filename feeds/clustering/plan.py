"""Plans which links have to change so that similar articles share a cluster, while clusters keep their IDs."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy

from feeds.clustering import partition
from feeds.clustering.partition import Groups
from feeds.clustering.window import Article, Window


@dataclass(frozen=True)
class Group:
    """Articles of the window that belong together, in the order of the window."""

    articles: tuple[Article, ...]
    # The cluster whose earlier articles these articles belong with, if any.
    past: int | None


@dataclass(frozen=True)
class Change:
    """The articles of a group, and the cluster that they belong in (None for a new cluster)."""

    articles: tuple[Article, ...]
    cluster_id: int | None

    @property
    def coming(self) -> list[Article]:
        return [each for each in self.articles if each.cluster_id is None or each.cluster_id != self.cluster_id]

    @property
    def moving(self) -> list[Article]:
        """Articles that have to leave another cluster."""
        return [each for each in self.coming if each.cluster_id is not None]


def groups_of(window: Window, go_on: Callable[[], None] = lambda: None) -> list[Group]:
    """Group the articles of the window. The result depends only on the window. The window's means are overwritten."""
    pasts, total = len(window.pasts), len(window.means)
    # Find for each article the row of the first article with the same vector, because texts of news agencies are copied
    # word for word. For an article without a vector, that is its own row.
    first_rows: dict[bytes, int] = {}
    first_of = numpy.arange(pasts, total)
    for place, row in enumerate(range(pasts, total)):
        if window.means[row].any():
            digest = hashlib.blake2b(window.means[row].tobytes(), digest_size=16).digest()
            first_of[place] = first_rows.setdefault(digest, row)
    sizes = numpy.zeros(total, numpy.int64)
    sizes[:pasts] = [past.articles for past in window.pasts]
    numpy.add.at(sizes, first_of, 1)
    into = partition.merge_similar(Groups(window.means, sizes, numpy.arange(total) < pasts), go_on=go_on)
    members: dict[int, list[Article]] = defaultdict(list)
    for article, root in zip(window.articles, into[first_of].tolist(), strict=True):
        members[root].append(article)
    return [
        Group(tuple(articles), window.pasts[root].cluster_id if root < pasts else None)
        for root, articles in sorted(members.items())
    ]


def changes(groups: Sequence[Group], stale: Collection[int] = ()) -> list[Change]:
    """Return the groups that differ from their clusters, and the groups of stale clusters, whose columns must be
    recomputed.
    """
    planned = (Change(group.articles, id) for group, id in zip(groups, clusters_of(groups), strict=True))
    return [change for change in planned if change.coming or change.cluster_id in stale]


def clusters_of(groups: Sequence[Group]) -> list[int | None]:
    """Return the cluster that each group continues: the cluster of its past, otherwise the cluster with which it
    shares most articles.
    """
    cluster_at = {place: group.past for place, group in enumerate(groups) if group.past is not None}
    shared = (
        (-number, cluster_id, place)
        for place, group in enumerate(groups)
        for cluster_id, number in Counter(article.cluster_id for article in group.articles).items()
        if cluster_id is not None
    )
    used = set(cluster_at.values())
    # Ties go to the older cluster, then to the earlier group.
    for _, cluster_id, place in sorted(shared):
        if place not in cluster_at and cluster_id not in used:
            cluster_at[place] = cluster_id
            used.add(cluster_id)
    return [cluster_at.get(place) for place in range(len(groups))]
