"""Defines the layout of a page: words with their places, lines of words, and cells separated by gaps.

All measures are points from the top left corner of a page.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

# The gap between two cells, in heights of the words; the words of a cell are closer together.
CELL_GAP = 0.8
CELL_BREAK = "  "


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    def beside(self, other: "Box") -> float:
        """Return the horizontal gap between the boxes; it is negative if they overlap horizontally."""
        return max(self.left, other.left) - min(self.right, other.right)

    @staticmethod
    def around(boxes: Iterable["Box"]) -> "Box":
        parts = list(boxes)
        return Box(
            min(box.left for box in parts),
            min(box.top for box in parts),
            max(box.right for box in parts),
            max(box.bottom for box in parts),
        )


@dataclass(frozen=True)
class Word:
    text: str
    box: Box


@dataclass(frozen=True)
class Cell:
    """Words next to each other without a gap."""

    words: tuple[Word, ...]

    @cached_property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @cached_property
    def box(self) -> Box:
        return Box.around(word.box for word in self.words)


@dataclass(frozen=True)
class Line:
    """Cells at the same height, from left to right. Its text separates them with two spaces."""

    page: int
    cells: tuple[Cell, ...]

    @cached_property
    def text(self) -> str:
        return CELL_BREAK.join(cell.text for cell in self.cells)

    @cached_property
    def box(self) -> Box:
        return Box.around(cell.box for cell in self.cells)

    @cached_property
    def _spans(self) -> list[tuple[int, int, Word]]:
        spans, start = [], 0
        for cell in self.cells:
            for word in cell.words:
                spans.append((start, start + len(word.text), word))
                start += len(word.text) + 1
            start += len(CELL_BREAK) - 1
        return spans

    def box_of(self, start: int, end: int) -> Box:
        """Return the box around the words of this part of the text."""
        return Box.around(word.box for first, last, word in self._spans if first < end and start < last)


@dataclass(frozen=True)
class Page:
    number: int
    width: float
    height: float
    lines: tuple[Line, ...]

    def below(self, line: Line) -> Iterator[Line]:
        """Yield the following lines, nearest first."""
        return iter(self.lines[self.lines.index(line) + 1 :])


@dataclass(frozen=True)
class Layout:
    pages: tuple[Page, ...]
    # False for plain text, which has no places to show.
    has_places: bool

    @cached_property
    def lines(self) -> list[Line]:
        return [line for page in self.pages for line in page.lines]

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def word_count(self) -> int:
        return sum(len(cell.words) for line in self.lines for cell in line.cells)

    def page_of(self, line: Line) -> Page:
        return self.pages[line.page - 1]

    def shares(self, page_number: int, box: Box) -> tuple[float, float, float, float]:
        """Return the box as fractions of its page, as `Context.field` expects it."""
        page = self.pages[page_number - 1]
        left, right = (min(1.0, max(0.0, place / page.width)) for place in (box.left, box.right))
        top, bottom = (min(1.0, max(0.0, place / page.height)) for place in (box.top, box.bottom))
        return left, top, right, bottom


def lines_of(page: int, words: Sequence[Word]) -> tuple[Line, ...]:
    """Group words into lines by their places, whatever their order in the file."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.box.middle):
        last = rows[-1][-1].box if rows else None
        # The middle of each word lies within the height of the other, because sizes may differ.
        if last and last.top < word.box.middle < last.bottom and word.box.top < last.middle < word.box.bottom:
            rows[-1].append(word)
        else:
            rows.append([word])
    lines = []
    for row in rows:
        row.sort(key=lambda word: word.box.left)
        cells = [[row[0]]]
        for before, word in pairwise(row):
            gap = word.box.left - before.box.right
            if gap < CELL_GAP * max(before.box.height, word.box.height):
                cells[-1].append(word)
            else:
                cells.append([word])
        lines.append(Line(page, tuple(Cell(tuple(cell)) for cell in cells)))
    return tuple(lines)
