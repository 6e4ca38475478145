"""Finds the columns of a table without borders: the gaps that run down through its lines."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ade_understanding.tables.layout import Chunk, Line

# In this share of lines, a text may cross a gap.
CROSSING = 0.06
# In ems. A gap between columns is at least as wide.
LEAST_GAP = 0.25
# A column has texts in this share of lines.
LEAST_FILLED = 0.04


class Columns(NamedTuple):
    # Between two columns, a place where no or few texts are.
    cuts: list[float]
    # Where the texts of each column begin and end.
    spans: list[tuple[float, float]]

    def __len__(self) -> int:
        return len(self.spans)

    def at(self, place: float) -> int:
        return bisect_left(self.cuts, place)


def find(lines: Sequence[Line], em: float, fixed: Sequence[float] = ()) -> Columns:
    """Return the columns of these lines. There is a cut at each of the fixed places."""
    several = [line for line in lines if len(line.chunks) > 1] or list(lines)
    chunks = [chunk for line in several for chunk in line.chunks]
    if not chunks:
        return Columns([], [])
    tolerance = int(len(several) * CROSSING)
    cuts = _gaps(chunks, tolerance, LEAST_GAP * em)
    fixed = [cut for cut in fixed if min(c.left for c in chunks) < cut < max(c.right for c in chunks)]
    cuts = sorted([*(cut for cut in cuts if all(abs(cut - other) > em / 2 for other in fixed)), *fixed])
    return _filled(cuts, chunks, max(1, int(len(several) * LEAST_FILLED)))


def _gaps(chunks: Sequence[Chunk], tolerance: int, least: float) -> list[float]:
    edges = sorted([*((chunk.left, 1) for chunk in chunks), *((chunk.right, -1) for chunk in chunks)])
    pieces: list[tuple[int, float, float]] = []
    depth, at = 0, edges[0][0]
    for place, step in edges:
        if place > at:
            pieces.append((depth, at, place))
            at = place
        depth += step
    cuts: list[float] = []
    gap: list[tuple[int, float, float]] = []
    for piece in [*pieces, (tolerance + 1, at, at)]:
        if piece[0] <= tolerance:
            gap.append(piece)
            continue
        if gap and gap[-1][2] - gap[0][1] >= least and gap[0][1] > edges[0][0]:
            fewest = min(depth for depth, _, _ in gap)
            # The widest part of the gap with the fewest texts.
            _, start, end = max((each for each in gap if each[0] == fewest), key=lambda each: each[2] - each[1])
            cuts.append((start + end) / 2)
        gap = []
    return cuts


def _filled(cuts: list[float], chunks: Sequence[Chunk], least: int) -> Columns:
    """Leave out columns that have hardly any text: join them with the nearer neighbour."""
    while True:
        groups: list[list[Chunk]] = [[] for _ in range(len(cuts) + 1)]
        for chunk in chunks:
            groups[bisect_left(cuts, (chunk.left + chunk.right) / 2)].append(chunk)
        poor = next((index for index, group in enumerate(groups) if len(group) < least), None)
        if poor is None or not cuts:
            break
        del cuts[min(poor, len(cuts) - 1)]
    return Columns(cuts, [(min(c.left for c in group), max(c.right for c in group)) for group in groups])
