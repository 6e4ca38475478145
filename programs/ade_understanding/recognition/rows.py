"""Finds the rows and cells of a page, from the places of its words or from the tabs and wide gaps of its text."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
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
# The value below a label is in one of the next rows, and at most this many times the height of the label away.
ROWS_BELOW, GAP_BELOW = 3, 2.5
# Separators within a line of small print.
SEPARATORS = frozenset("·|•")
# Lines and characters of a text without places, as shares of a page.
LINE_PITCH, CHARACTER, COLUMN = 0.016, 0.01, 0.2
# The width of a word that is written upwards is less than this share of its height.
UPRIGHT = 0.62
_BREAK = re.compile(r" ?\t ?| {2,}| [·|•] ")
A4 = 1.414
_TEXT, _LEFT, _RIGHT, _HEIGHT = itemgetter(0), itemgetter(1), itemgetter(3), itemgetter(2, 4)


class Cell(NamedTuple):
    text: str
    # Left and right end, in a unit that is the same for all cells of a page.
    left: float
    right: float
    words: Sequence[Word] = ()
    # The number of its line if it has no words.
    line: int = 0

    @property
    def top(self) -> float:
        return float(self.words[0][2]) if self.words else LINE_PITCH * self.line

    @property
    def bottom(self) -> float:
        return float(self.words[0][4]) if self.words else LINE_PITCH * (self.line + 0.8)

    @property
    def height(self) -> float:
        return self.bottom - self.top

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
    def __init__(self, text: str, words: Sequence[Word], tables: Sequence[Any], shape: float = A4) -> None:
        """`shape` is the height of the page divided by its width."""
        level = _level(words[:MOST_WORDS], shape)
        rows = _rows_of_words(level) if level else _rows_of_text(text, tables)
        # A row of nothing but separators has no cells.
        self.rows = [row for row in rows if row]
        self._cells = [cell for row in self.rows for cell in row]
        # One line per cell, for values that are found by their form and must not cross a gap.
        self.text = "\n".join([cell.text for cell in self._cells])

    def place(self, start: int, end: int) -> Place:
        """Return the place of a part of `text`, which must lie within one cell."""
        cell = self._cells[self.text.count("\n", 0, start)]
        offset = self.text.rfind("\n", 0, start) + 1
        return Place(cell, start - offset, end - offset)

    def below(self, number: int, cell: Cell) -> tuple[int, Cell] | None:
        """Return the next cell below that overlaps this one horizontally, with the number of its row."""
        for under_number in range(number + 1, min(number + 1 + ROWS_BELOW, len(self.rows))):
            row = self.rows[under_number]
            if row[0].top > cell.bottom + GAP_BELOW * cell.height:
                return None
            for under in row:
                if under.left < cell.right and cell.left < under.right:
                    return under_number, under
        return None


def around(words: Sequence[Word]) -> Box | None:
    if not words:
        return None
    left, top = min(word[1] for word in words), min(word[2] for word in words)
    return [left, top, max(word[3] for word in words), max(word[4] for word in words)]


def _level(words: Sequence[Word], shape: float) -> Sequence[Word]:
    """Return the words without those that are written upwards in a margin, because they would join rows."""
    narrow = UPRIGHT * shape
    upwards = {
        (word[1], word[3]) for word in words if len(word[0]) > 3 and word[3] - word[1] < narrow * (word[4] - word[2])
    }
    return [word for word in words if (word[1], word[3]) not in upwards] if upwards else words


def _rows_of_words(words: Sequence[Word]) -> Iterator[list[Cell]]:
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
    # A colon before a value belongs to the label on its left.
    for left, part in pairwise(parts):
        if left and part and part[0][0] == ":":
            left.append(part.pop(0))
    return [Cell(" ".join(map(_TEXT, part)), part[0][1], part[-1][3], part) for part in parts if part]


def _width(word: Word) -> float:
    """Return the average width of a character."""
    return float(word[3] - word[1]) / max(len(word[0]), 1)


def _rows_of_text(text: str, tables: Sequence[Any]) -> Iterator[list[Cell]]:
    number = 0
    for number, line in enumerate(text[:MOST_CHARACTERS].split("\n")):
        if line and not line.isspace():
            parts = _BREAK.split(line)
            # Number the columns of a table; place the columns of a text by their first character.
            at = range(len(parts)) if "\t" in line else accumulate((len(part) + 2 for part in parts[:-1]), initial=0)
            yield from _row(parts, at, number, by_number="\t" in line)
    # Some rows of tables are not lines of the text.
    room = MOST_CHARACTERS
    for below, row in enumerate((row for table in tables for row in table["rows"]), number + 2):
        room -= sum(map(len, row))
        if room < 0:
            return
        if any("\n" in cell for cell in row) or "\t" not in text:
            yield from _row([" ".join(cell.split()) for cell in row], range(len(row)), below, by_number=True)


def _row(parts: Sequence[str], at: Any, number: int, *, by_number: bool) -> Iterator[list[Cell]]:
    unit = COLUMN if by_number else CHARACTER
    cells = [
        Cell(part.strip(), unit * left, unit * (left + (1 if by_number else max(len(part), 1))), (), number)
        for left, part in zip(at, parts, strict=True)
        if part and not part.isspace()
    ]
    if cells:
        yield cells
