"""Plans which links have to change so that similar articles share a cluster, while clusters keep their IDs."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy

from feeds.clustering import partition
from feeds.clustering.partition import Groups, Indexes, Vectors
from feeds.clustering.window import Article, Window


@dataclass(frozen=True)
class Group:
    """Articles of the window that belong together, in the order of the window."""

    articles: tuple[Article, ...]
    # The cluster whose past the articles belong to, if any.
    past: int | None


@dataclass(frozen=True)
class Change:
    """The articles of a group and the cluster that they belong in; None for a new cluster."""

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
    """Group the articles of the window. The result depends on the window alone. It overwrites the means of the
    window.
    """
    pasts, total = len(window.pasts), len(window.means)
    first_of = _first_copies(window)
    sizes = numpy.zeros(total, numpy.int64)
    sizes[:pasts] = [past.articles for past in window.pasts]
    numpy.add.at(sizes, first_of, 1)
    into = partition.merged(Groups(window.means, sizes, numpy.arange(total) < pasts), go_on=go_on)
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
    found = (Change(group.articles, cluster_id) for group, cluster_id in zip(groups, clusters_of(groups), strict=True))
    return [change for change in found if change.coming or change.cluster_id in stale]


def clusters_of(groups: Sequence[Group]) -> list[int | None]:
    """Return the cluster that each group continues: the cluster of its past, otherwise the cluster with which it
    shares most articles.
    """
    taken: dict[int, int] = {}
    for place, group in enumerate(groups):
        if group.past is not None:
            taken[place] = group.past
    shared = (
        (-number, cluster_id, place)
        for place, group in enumerate(groups)
        for cluster_id, number in Counter(article.cluster_id for article in group.articles).items()
        if cluster_id is not None
    )
    used = set(taken.values())
    # Ties go to the older cluster, then to the earlier group.
    for _, cluster_id, place in sorted(shared):
        if place not in taken and cluster_id not in used:
            taken[place] = cluster_id
            used.add(cluster_id)
    return [taken.get(place) for place in range(len(groups))]


def _first_copies(window: Window) -> Indexes:
    """Return for each article the row of the first article with the same vector, because texts of news agencies are
    copied word for word. An article without a vector is its own first.
    """
    first: dict[bytes, int] = {}
    rows = range(len(window.pasts), len(window.means))
    found = [first.setdefault(_digest(window.means[row]), row) if window.means[row].any() else row for row in rows]
    return numpy.array(found, numpy.int64)


def _digest(vector: Vectors) -> bytes:
    return hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
