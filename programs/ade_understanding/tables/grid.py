"""The cells of a table, which may span several rows and columns."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ade_understanding.tables.layout import LEADER, Box, Word, around, rows_of

_LEADING = re.compile(r"(?:(?:\s*\.){3,}|(?:\s+\.){2,})\s*$")


@dataclass(slots=True)
class Cell:
    words: Sequence[Word]
    # First and last row and column.
    top: int
    left: int
    bottom: int
    right: int

    @property
    def text(self) -> str:
        """The text, with one line for each line on the page, and without the dots that lead to a value."""
        rows = rows_of([word for word in self.words if not LEADER.fullmatch(word.text)])
        return _LEADING.sub("", "\n".join(" ".join(word.text for word in row) for row in rows))


@dataclass(slots=True)
class Grid:
    cells: list[Cell]
    # How many rows at the top are headers.
    headers: int = 0

    @property
    def rows(self) -> int:
        return max((cell.bottom + 1 for cell in self.cells), default=0)

    @property
    def columns(self) -> int:
        return max((cell.right + 1 for cell in self.cells), default=0)

    @property
    def box(self) -> Box:
        return around(word for cell in self.cells for word in cell.words)

    def compact(self) -> "Grid":
        """Leave out empty cells, rows and columns."""
        cells = [cell for cell in self.cells if cell.words]
        rows = _kept((cell.top, cell.bottom) for cell in cells)
        columns = _kept((cell.left, cell.right) for cell in cells)
        headers = sum(row < self.headers for row in rows)
        for cell in cells:
            cell.top, cell.bottom = _squeezed(cell.top, cell.bottom, rows)
            cell.left, cell.right = _squeezed(cell.left, cell.right, columns)
        return Grid(sorted(cells, key=lambda cell: (cell.top, cell.left)), headers)

    def trimmed(self) -> "Grid":
        """Leave out a title above the table, and notes below it: rows with one text across all columns."""
        cells, columns = self.cells, self.columns
        top, bottom = 0, self.rows - 1
        while top < bottom and _is_across([cell for cell in cells if cell.top <= top <= cell.bottom], columns):
            top += 1
        while bottom > top and _is_across([cell for cell in cells if cell.top <= bottom <= cell.bottom], columns):
            bottom -= 1
        return Grid([cell for cell in cells if cell.bottom >= top and cell.top <= bottom], self.headers).compact()

    @property
    def fullness(self) -> float:
        """The share of the area that has texts."""
        area = sum((cell.bottom - cell.top + 1) * (cell.right - cell.left + 1) for cell in self.cells)
        return area / max(self.rows * self.columns, 1)


def _is_across(cells: Sequence[Cell], columns: int) -> bool:
    return len(cells) == 1 and cells[0].left == 0 and cells[0].right == columns - 1


def _kept(ranges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the new number of each row or column in which a cell starts."""
    return {old: new for new, old in enumerate(sorted({first for first, _ in ranges}))}


def _squeezed(first: int, last: int, kept: dict[int, int]) -> tuple[int, int]:
    inside = [new for old, new in kept.items() if first <= old <= last]
    return inside[0], inside[-1]
