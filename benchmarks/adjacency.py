"""Compares tables by adjacency relations, as the ICDAR 2013 table competition does.

A relation says that one text is next to another in a row, or in a column, of the same table; empty cells between them
do not count. Relations that occur in both the result and the truth are correct.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from defusedxml import ElementTree

Relations = Counter[tuple[str, str, str]]

_OTHER = re.compile(r"[\W_]+")


class Cell(NamedTuple):
    text: str
    # First and last row and column, because a cell may span several.
    top: int
    left: int
    bottom: int
    right: int


class Score(NamedTuple):
    correct: int
    found: int
    wanted: int

    @property
    def precision(self) -> float:
        return self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.wanted if self.wanted else 1.0

    @property
    def f1(self) -> float:
        return f1(self.precision, self.recall)


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def relations(cells: Iterable[Cell]) -> Relations:
    """Return the relations of each cell with its nearest neighbours to the right and below."""
    grid: dict[tuple[int, int], int] = {}
    texts: list[str] = []
    for cell in cells:
        if text := _normal(cell.text):
            for row in range(cell.top, cell.bottom + 1):
                for column in range(cell.left, cell.right + 1):
                    grid[row, column] = len(texts)
            texts.append(text)
    pairs = set()
    for across in (True, False):
        before: tuple[int, int] | None = None
        # Sorted by row and column, or by column and row.
        for place in sorted(grid, key=lambda place: place if across else place[::-1]):
            line = place[0] if across else place[1]
            if before and before[0] == line and before[1] != grid[place]:
                pairs.add((before[1], grid[place], "right" if across else "below"))
            before = line, grid[place]
    return Counter((texts[one], texts[other], direction) for one, other, direction in pairs)


def compare(found: Relations, wanted: Relations) -> Score:
    return Score((found & wanted).total(), found.total(), wanted.total())


def truth(file: Path) -> Relations:
    """Return the relations of a file such as `us-001-str.xml`."""
    result: Relations = Counter()
    for region in ElementTree.parse(file).iter("region"):
        result += relations(_cell(cell) for cell in region.iter("cell"))
    return result


def _cell(element: Any) -> Cell:
    top, left = int(element.get("start-row")), int(element.get("start-col"))
    bottom, right = int(element.get("end-row", top)), int(element.get("end-col", left))
    return Cell(element.findtext("content", ""), top, left, bottom, right)


def _normal(text: str) -> str:
    """Return the text without spaces, and with one underscore for each run of other signs."""
    return _OTHER.sub("_", "".join(unicodedata.normalize("NFKC", text).split()))
