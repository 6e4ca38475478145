"""Groups vectors by average linkage over cosines. The result depends only on the vectors and their order.

The similarity of two groups is the average over their members, which is the product of their mean vectors. Groups
that are each other's nearest are merged, all such pairs at once, until no two are similar enough. The result is the
same as merging the most similar pair one at a time, because a merged group is never nearer to a third group than the
nearer of its parts was. For the same reason, a group without a near neighbour never gets one, and is not looked at
again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

# Lowest average cosine within one event. Tuned on tests/feeds/headlines.txt with the local model, where 0.34 to 0.40
# do about equally well. See docs/clustering.md.
THRESHOLD = 0.38
# Size of the blocks that are compared between two calls of `go_on`; a block takes a few megabytes.
ROWS, COLUMNS = 512, 4096
# Limit for comparisons of two groups. When it is reached, the groups are valid but perhaps not complete; this happens
# if a feed sends thousands of articles that become similar one by one. The limit is a minute of work; for comparison,
# 20,000 different articles take 2 s. The first pass over a full window (window.MOST_ARTICLES articles and as many
# pasts) uses a third of it.
MOST_COMPARISONS = 10**10

Vectors = NDArray[numpy.float32]
Indexes = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]


@dataclass
class Groups:
    """The groups to merge, in a fixed order. `means` is modified."""

    means: Vectors
    # Number of articles in each group. Groups of size 0 take no part.
    sizes: Indexes
    # Fixed groups, and groups that contain one, are never merged with each other.
    fixed: Flags


def merge_similar(
    groups: Groups,
    *,
    threshold: float = THRESHOLD,
    go_on: Callable[[], None] = lambda: None,
    most_comparisons: int = MOST_COMPARISONS,
) -> Indexes:
    """Return for each group the index of the first group that it was merged with, or its own index if there is none."""
    return _Merging(groups, threshold, go_on, most_comparisons).run()


class _Merging:
    def __init__(self, groups: Groups, threshold: float, go_on: Callable[[], None], most_comparisons: int) -> None:
        self.means, self.sizes, self.fixed = groups.means, groups.sizes.copy(), groups.fixed.copy()
        self.threshold, self.go_on, self.left = threshold, go_on, most_comparisons
        number = len(self.means)
        self.into = numpy.arange(number)
        # The groups that may still be merged, and each one's nearest group.
        self.alive: Indexes = numpy.flatnonzero(self.sizes)
        self.nearest: Indexes = numpy.full(number, -1)
        self.nearness: Vectors = numpy.zeros(number, numpy.float32)

    def run(self) -> Indexes:
        is_seen = self._look(self.alive)
        while is_seen and len(self.alive) > 1:
            pairs = self.alive[self.nearest[self.nearest[self.alive]] == self.alive]
            pairs = pairs[pairs < self.nearest[pairs]]
            if not len(pairs):
                # Because of rounding, it can happen that no two groups are each other's nearest.
                pairs = self.alive[[self.nearness[self.alive].argmax()]]
            for first, second in zip(pairs.tolist(), self.nearest[pairs].tolist(), strict=True):
                into, other = min(first, second), max(first, second)
                size, size_of_other = self.sizes[into], self.sizes[other]
                total = self.means[into] * size + self.means[other] * size_of_other
                self.means[into] = total / (size + size_of_other)
                self.sizes[into] += size_of_other
                self.fixed[into] |= self.fixed[other]
                self.into[other] = into
                # The nearest group of each of the two is unknown now.
                self.nearest[[into, other]] = -1
            self.alive = self.alive[self.into[self.alive] == self.alive]
            is_seen = self._look(self._stale())
        roots = self.into
        while not numpy.array_equal(roots, roots[roots]):
            roots = roots[roots]
        return roots

    def _look(self, stale: Indexes) -> bool:
        """Find the nearest group of each stale group, and repeat for groups whose nearest group has dropped out. Return
        False if the limit of comparisons was reached.
        """
        while len(stale):
            self.nearness[stale] = -2
            for start in range(0, len(self.alive), COLUMNS):
                others = self.alive[start : start + COLUMNS]
                means = self.means[others].T
                for first in range(0, len(stale), ROWS):
                    self.go_on()
                    rows = stale[first : first + ROWS]
                    self.left -= len(rows) * len(others)
                    if self.left < 0:
                        return False
                    self._look_among(rows, others, means)
            self.alive = self.alive[self.nearness[self.alive] >= self.threshold]
            stale = self._stale()
        return True

    def _look_among(self, rows: Indexes, others: Indexes, means: Vectors) -> None:
        similar = self.means[rows] @ means
        similar[rows[:, None] == others] = -2
        if (fixed := self.fixed[rows]).any():
            similar[numpy.ix_(fixed, self.fixed[others])] = -2
        # `argmax` takes the first of equally near groups.
        best = similar.argmax(axis=1)
        nearness = similar[numpy.arange(len(rows)), best]
        is_nearer = nearness > self.nearness[rows]
        self.nearest[rows[is_nearer]] = others[best[is_nearer]]
        self.nearness[rows[is_nearer]] = nearness[is_nearer]

    def _stale(self) -> Indexes:
        """Return the groups whose nearest group has been merged or dropped."""
        is_alive = numpy.zeros(len(self.means) + 1, bool)
        is_alive[self.alive] = True
        near = self.nearest[self.alive]
        # A group that has just been merged is a new group, so it no longer counts as the nearest of any other.
        stale: Indexes = self.alive[~is_alive[near] | (self.nearest[near] == -1) | (near == -1)]
        return stale
