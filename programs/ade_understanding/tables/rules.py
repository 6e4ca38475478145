"""Ruling lines of a page: merged, sorted, and joined to grids."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ade_understanding.tables.layout import Box

# How far apart lines may be that are meant to touch.
TOUCH = 3.0
# How far apart two lines are drawn that are seen as one.
SAME = 2.5


class Rule(NamedTuple):
    """A horizontal line at a height, or a vertical line at a distance from the left, from one end to the other."""

    at: float
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


class Frame(NamedTuple):
    """Lines that touch each other."""

    across: list[Rule]
    down: list[Rule]

    @property
    def box(self) -> Box:
        lefts = [rule.start for rule in self.across] + [rule.at for rule in self.down]
        rights = [rule.end for rule in self.across] + [rule.at for rule in self.down]
        tops = [rule.at for rule in self.across] + [rule.start for rule in self.down]
        bottoms = [rule.at for rule in self.across] + [rule.end for rule in self.down]
        return Box(min(lefts), min(tops), max(rights), max(bottoms))


def split(rulings: Iterable[Sequence[float]], width: float, height: float) -> tuple[list[Rule], list[Rule]]:
    """Return the horizontal and the vertical lines in points, from rulings in fractions of the page."""
    across, down = [], []
    for left, top, right, bottom in rulings:
        if right - left >= bottom - top and abs(bottom - top) * height < SAME:
            across.append(Rule((top + bottom) / 2 * height, left * width, right * width))
        elif abs(right - left) * width < SAME:
            down.append(Rule((left + right) / 2 * width, top * height, bottom * height))
    return merged(across), merged(down)


def merged(rules: Sequence[Rule], gap: float = TOUCH) -> list[Rule]:
    """Join lines that continue or cover each other."""
    result: list[Rule] = []
    group: list[Rule] = []
    for rule in sorted(rules):
        if group and rule.at - group[0].at > SAME:
            result += _joined(group, gap)
            group = []
        group.append(rule)
    return result + _joined(group, gap)


def positions(rules: Iterable[float], apart: float = TOUCH) -> list[float]:
    """Return the different positions; close ones count as one."""
    result: list[float] = []
    for at in sorted(rules):
        if not result or at - result[-1] > apart:
            result.append(at)
    return result


def frames(across: Sequence[Rule], down: Sequence[Rule]) -> list[Frame]:
    """Return the groups of lines that touch, each with horizontal and vertical lines."""
    parent = list(range(len(across) + len(down)))

    def root(each: int) -> int:
        while parent[each] != each:
            parent[each] = parent[parent[each]]
            each = parent[each]
        return each

    for number, vertical in enumerate(down, len(across)):
        for index, rule in enumerate(across):
            if rule.at > vertical.end + TOUCH:
                break
            is_within = rule.start - TOUCH <= vertical.at <= rule.end + TOUCH
            if is_within and vertical.start - TOUCH <= rule.at:
                parent[root(number)] = root(index)
    found: dict[int, Frame] = {}
    for index, rule in enumerate(across):
        found.setdefault(root(index), Frame([], [])).across.append(rule)
    for number, rule in enumerate(down, len(across)):
        found.setdefault(root(number), Frame([], [])).down.append(rule)
    return [frame for frame in found.values() if frame.across and frame.down]


def _joined(group: Sequence[Rule], gap: float) -> list[Rule]:
    result: list[Rule] = []
    for rule in sorted(group, key=lambda rule: rule.start):
        if result and rule.start <= result[-1].end + gap:
            result[-1] = Rule(result[-1].at, result[-1].start, max(result[-1].end, rule.end))
        else:
            result.append(rule)
    return result
