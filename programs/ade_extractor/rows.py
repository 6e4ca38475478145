"""Finds the rows and cells of a page, from the places of its words or from the tabs and wide gaps of its text."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter, sub
from typing import Any, NamedTuple

# A word and its place as fractions of the page: [text, left, top, right, bottom].
Word = Sequence[Any]
Box = list[float]

# Limits per page. A page with more is a table or an attack.
MOST_CHARACTERS = 100_000
MOST_WORDS = 20_000
# Words further apart than this many average character widths belong to different cells. A space is half as wide.
CELL_GAP = 1.6
# No space is narrower than this fraction of a page, so most gaps need not be measured.
LEAST_GAP = 0.006
# Separators within a line of small print.
SEPARATORS = frozenset("·|•")
_BREAK = re.compile(r" ?\t ?| {2,}| [·|•] ")
_TEXT, _LEFT, _RIGHT, _HEIGHT = itemgetter(0), itemgetter(1), itemgetter(3), itemgetter(2, 4)


class Cell(NamedTuple):
    text: str
    # Left and right end, in a unit that is the same for all cells of a page.
    left: float
    right: float
    words: Sequence[Word] = ()

    def box(self, start: int, end: int) -> Box | None:
        """Return the box around the words of this part of the text."""
        at, inside = 0, []
        for word in self.words:
            if at < end and start < at + len(word[0]):
                inside.append(word)
            at += len(word[0]) + 1
        return around(inside)


class Place(NamedTuple):
    """A part of the text of a cell."""

    cell: Cell
    start: int
    end: int

    @property
    def box(self) -> Box | None:
        return self.cell.box(self.start, self.end)


class Rows:
    def __init__(self, text: str, words: Sequence[Word], tables: Sequence[Any]) -> None:
        self.rows = list(_rows_of_words(words)) if words else list(_rows_of_text(text, tables))
        self._cells = [cell for row in self.rows for cell in row]
        # One line per cell, for values that are found by their form and must not cross a gap.
        self.text = "\n".join([cell.text for cell in self._cells])

    def place(self, start: int, end: int) -> Place:
        """Return the place of a part of `text`, which must lie within one cell."""
        cell = self._cells[self.text.count("\n", 0, start)]
        offset = self.text.rfind("\n", 0, start) + 1
        return Place(cell, start - offset, end - offset)

    def below(self, number: int, cell: Cell) -> Cell | None:
        """Return the cell in the next row that overlaps this one horizontally."""
        if number + 1 >= len(self.rows):
            return None
        under = (each for each in self.rows[number + 1] if each.left < cell.right and cell.left < each.right)
        return next(under, None)


def around(words: Sequence[Word]) -> Box | None:
    if not words:
        return None
    left, top = min(word[1] for word in words), min(word[2] for word in words)
    return [left, top, max(word[3] for word in words), max(word[4] for word in words)]


def _rows_of_words(words: Sequence[Word]) -> Iterator[list[Cell]]:
    words = words[:MOST_WORDS]
    if sum([len(word[0]) for word in words]) > MOST_CHARACTERS:
        lengths = accumulate(len(word[0]) for word in words)
        words = [word for word, length in zip(words, lengths, strict=True) if length <= MOST_CHARACTERS]
    # Words of the same line and font have the same height, so most of them are sorted in groups.
    runs = [list(run) for _, run in groupby(words, _HEIGHT)]
    runs.sort(key=lambda run: run[0][2] + run[0][4])
    row: list[Word] = []
    for run in runs:
        if row:
            # In a row, the middle of each word lies within the height of the other, because sizes may differ.
            last, word = row[-1], run[0]
            middle, other = (last[2] + last[4]) / 2, (word[2] + word[4]) / 2
            if not (last[2] <= other <= last[4] and word[2] <= middle <= word[4]):
                yield _cells(row)
                row = []
        row += run
    if row:
        yield _cells(row)


def _cells(row: list[Word]) -> list[Cell]:
    row.sort(key=_LEFT)
    texts = list(map(_TEXT, row))
    widest = max(map(sub, map(_LEFT, row[1:]), map(_RIGHT, row)), default=0)
    if widest <= LEAST_GAP and SEPARATORS.isdisjoint(texts):
        return [Cell(" ".join(texts), row[0][1], row[-1][3], row)]
    parts = []
    begin, end = 0, row[0][3]
    for number, word in enumerate(row):
        gap = word[1] - end
        if gap > LEAST_GAP and gap > CELL_GAP * max(_width(row[number - 1]), _width(word)):
            parts.append(row[begin:number])
            begin = number
        elif word[0] in SEPARATORS:
            parts.append(row[begin:number])
            begin = number + 1
        end = word[3]
    parts.append(row[begin:])
    return [Cell(" ".join(map(_TEXT, part)), part[0][1], part[-1][3], part) for part in parts if part]


def _width(word: Word) -> float:
    """Return the average width of a character."""
    return float(word[3] - word[1]) / max(len(word[0]), 1)


def _rows_of_text(text: str, tables: Sequence[Any]) -> Iterator[list[Cell]]:
    for line in text[:MOST_CHARACTERS].split("\n"):
        if line and not line.isspace():
            parts = _BREAK.split(line)
            # Number the columns of a table; place the columns of a text by their first character.
            at = range(len(parts)) if "\t" in line else accumulate((len(part) + 2 for part in parts[:-1]), initial=0)
            yield from _row(parts, at, by_number="\t" in line)
    # Some rows of tables are not lines of the text.
    room = MOST_CHARACTERS
    for row in (row for table in tables for row in table["rows"]):
        room -= sum(map(len, row))
        if room < 0:
            return
        if any("\n" in cell for cell in row) or "\t" not in text:
            yield from _row([" ".join(cell.split()) for cell in row], range(len(row)), by_number=True)


def _row(parts: Sequence[str], at: Any, *, by_number: bool) -> Iterator[list[Cell]]:
    cells = [
        Cell(part.strip(), left, left + (1 if by_number else max(len(part), 1)))
        for left, part in zip(at, parts, strict=True)
        if part and not part.isspace()
    ]
    if cells:
        yield cells
