"""Which vectors belong together: average linkage over cosines, as a function of the vectors and their order alone.

Two groups are as similar as their members are on average, which is the product of their mean vectors. Groups that are
each other's nearest are merged, all such pairs at once, until no two are similar enough. That makes the same groups as
merging the most similar pair of all, one after the other: a merged group is never nearer to a third one than the nearer
of its parts was. For the same reason a group that is near to none will never be, and is not looked at again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

# The least average cosine of one event. Tuned on tests/feeds/headlines.txt with the local model: from 0.34 to 0.40 it
# does about as well. See docs/clustering.md.
THRESHOLD = 0.38
# So many rows are compared with so many at once, between two looks at whether to go on: in a few megabytes.
ROWS, COLUMNS = 512, 4096
# Of two groups. What is merged until then is good, only not complete: somebody sends thousands of articles that become
# alike one by one. It is a minute of work, where 20,000 different ones take 2 s; the first look at as many as a window
# holds (window.MOST_ARTICLES, and as many pasts) is a third of it.
MOST_COMPARISONS = 10**10

Vectors = NDArray[numpy.float32]
Indexes = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]


@dataclass
class Groups:
    """What is to be merged, in an order that does not change. The array of means is written to."""

    means: Vectors
    # Of how many articles each is the mean. One of none takes no part.
    sizes: Indexes
    # Two of these are never merged, nor what they have become part of.
    fixed: Flags


def merged(
    groups: Groups,
    *,
    threshold: float = THRESHOLD,
    go_on: Callable[[], None] = lambda: None,
    most_comparisons: int = MOST_COMPARISONS,
) -> Indexes:
    """For each the first of those with which it belongs together."""
    return _Merging(groups, threshold, go_on, most_comparisons).run()


class _Merging:
    def __init__(self, groups: Groups, threshold: float, go_on: Callable[[], None], most_comparisons: int) -> None:
        self.means, self.sizes, self.fixed = groups.means, groups.sizes.copy(), groups.fixed.copy()
        self.threshold, self.go_on, self.left = threshold, go_on, most_comparisons
        number = len(self.means)
        self.into = numpy.arange(number)
        # Those that may still be merged, and the nearest of each.
        self.alive: Indexes = numpy.flatnonzero(self.sizes)
        self.nearest: Indexes = numpy.full(number, -1)
        self.nearness: Vectors = numpy.zeros(number, numpy.float32)

    def run(self) -> Indexes:
        is_seen = self._look(self.alive)
        while is_seen and len(self.alive) > 1:
            self._merge()
            is_seen = self._look(self._stale())
        return self._firsts()

    def _look(self, stale: Indexes) -> bool:
        """For the nearest of these, until each has one that may be merged. Whether all of them could be looked at."""
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
        if (held := self.fixed[rows]).any():
            similar[numpy.ix_(held, self.fixed[others])] = -2
        # Of several that are as near, the first.
        best = similar.argmax(axis=1)
        nearness = similar[numpy.arange(len(rows)), best]
        is_nearer = nearness > self.nearness[rows]
        self.nearest[rows[is_nearer]] = others[best[is_nearer]]
        self.nearness[rows[is_nearer]] = nearness[is_nearer]

    def _merge(self) -> None:
        pairs = self.alive[self.nearest[self.nearest[self.alive]] == self.alive]
        pairs = pairs[pairs < self.nearest[pairs]]
        if not len(pairs):
            # As numbers are rounded, nobody is the nearest of its nearest.
            pairs = self.alive[[self.nearness[self.alive].argmax()]]
        for first, second in zip(pairs.tolist(), self.nearest[pairs].tolist(), strict=True):
            self._join(min(first, second), max(first, second))
        self.alive = self.alive[self.into[self.alive] == self.alive]

    def _join(self, first: int, second: int) -> None:
        size, other = self.sizes[first], self.sizes[second]
        self.means[first] = (self.means[first] * size + self.means[second] * other) / (size + other)
        self.sizes[first] += other
        self.fixed[first] |= self.fixed[second]
        self.into[second] = first
        # Neither knows its nearest any more.
        self.nearest[[first, second]] = -1

    def _stale(self) -> Indexes:
        """Whose nearest has been merged or given up."""
        is_alive = numpy.zeros(len(self.means) + 1, bool)
        is_alive[self.alive] = True
        near = self.nearest[self.alive]
        # Whoever has just been made is as good as gone for those to whom it was the nearest.
        stale: Indexes = self.alive[~is_alive[near] | (self.nearest[near] == -1) | (near == -1)]
        return stale

    def _firsts(self) -> Indexes:
        into = self.into
        while not numpy.array_equal(into, into[into]):
            into = into[into]
        return into
