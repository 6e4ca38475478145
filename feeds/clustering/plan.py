"""What has to change so that articles that belong together are in one cluster, and clusters keep their ids."""

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
    """Articles of the window that belong together, in its order."""

    articles: tuple[Article, ...]
    # The cluster whose past they belong to.
    past: int | None


@dataclass(frozen=True)
class Change:
    """Of one group, and of the cluster that it is to be: None is a new one."""

    articles: tuple[Article, ...]
    cluster_id: int | None

    @property
    def coming(self) -> list[Article]:
        return [each for each in self.articles if each.cluster_id is None or each.cluster_id != self.cluster_id]

    @property
    def moving(self) -> list[Article]:
        """Those that have to leave another cluster."""
        return [each for each in self.coming if each.cluster_id is not None]


def groups_of(window: Window, go_on: Callable[[], None] = lambda: None) -> list[Group]:
    """A function of the window alone, in whatever order it came in. Its means are not what they were after that."""
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
    """What is not so yet; and of clusters that are stale, so that they say again what they are about."""
    found = (Change(group.articles, cluster_id) for group, cluster_id in zip(groups, clusters_of(groups), strict=True))
    return [change for change in found if change.coming or change.cluster_id in stale]


def clusters_of(groups: Sequence[Group]) -> list[int | None]:
    """The cluster that each group goes on as: that of its past, else the one it has most articles of."""
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
    # Of those that share as many, the older cluster, and the earlier group.
    for _, cluster_id, place in sorted(shared):
        if place not in taken and cluster_id not in used:
            taken[place] = cluster_id
            used.add(cluster_id)
    return [taken.get(place) for place in range(len(groups))]


def _first_copies(window: Window) -> Indexes:
    """The row of the first article with the same vector, for each: agencies are quoted word by word. Of those without a
    vector each is the first.
    """
    first: dict[bytes, int] = {}
    rows = range(len(window.pasts), len(window.means))
    found = [first.setdefault(_digest(window.means[row]), row) if window.means[row].any() else row for row in rows]
    return numpy.array(found, numpy.int64)


def _digest(vector: Vectors) -> bytes:
    return hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
