"""Turns the tables of a document into data: rows under named columns, whose values have a kind."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ade_understanding.tables import kinds
from ade_understanding.tables.find import find
from ade_understanding.tables.grid import Cell, Grid
from ade_understanding.tables.layout import around
from ade_understanding.tables.repeated import repeats

# Limits per table and per document. What is left out is counted.
MOST_ROWS = 5_000
MOST_COLUMNS = 500
MOST_CELLS = 50_000
MOST_TABLES = 500
MOST_CELLS_IN_ALL = 100_000
LONGEST_TEXT = 2_000
LONGEST_NAME = 60
LONGEST_LABEL = 200
# A table goes on on the next page if it ends this far down, and begins this far up there.
ENDS_BELOW, BEGINS_ABOVE = 0.72, 0.25
# Columns that start this close to each other, as a share of the width of the page, are the same.
SAME = 0.02
# A page of a long document may have a table if it has so many lines with two numbers, or so many short lines.
LINES_OF_NUMBERS, SHORT_LINES = 3, 8
SHORT = 25
_TWO_NUMBERS = re.compile(r"^[^\n\d]{0,200}\d[\d.,]{0,20}[ \t%€$][^\n\d]{0,20}\d", re.MULTILINE)
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")

Box = list[float]


@dataclass
class PageTable:
    """A table on one page, before its columns have kinds."""

    page: int
    box: Box | None
    labels: list[str]
    # For each row the text of each cell, and its place; rows of office files have no places.
    rows: list[list[str]]
    boxes: list[list[Box | None]] | None = None
    # Where the texts of each column start.
    starts: list[float] = field(default_factory=list)
    rows_left_out: int = 0
    columns_left_out: int = 0
    last_page: int = 0
    last_bottom: float = 0.0
    # For each row, the page that it is on.
    pages: list[int] = field(default_factory=list)


class Tables:
    """Collects the tables of the pages of a document, in their order."""

    def __init__(self) -> None:
        self._tables: list[PageTable] = []
        self._cells = 0

    def add_page(
        self,
        number: int,
        words: Sequence[Any],
        rulings: Sequence[Sequence[float]],
        size: tuple[float | None, float | None],
        read: Sequence[dict[str, Any]],
    ) -> None:
        """Add the tables that the reader of the file has read, otherwise those that the words form."""
        for table in read:
            self._add(of_rows(number, table["rows"], table.get("box")))
        width, height = size
        if not read and words and width and height:
            for grid in find(words, rulings, width, height):
                self._add(of_grid(number, grid, width, height))

    def result(self, line_items: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the tables, except those that only repeat the line items."""
        tables = [table for table in map(_typed, self._tables) if not repeats(table, line_items)]
        return [table | {"name": f"table_{number}"} for number, table in enumerate(tables, 1)]

    def _add(self, table: PageTable | None) -> None:
        if table is None or len(self._tables) >= MOST_TABLES or self._cells >= MOST_CELLS_IN_ALL:
            return
        if self._tables and _goes_on(self._tables[-1], table):
            _append(self._tables[-1], table)
        else:
            self._tables.append(table)
        self._cells += len(table.rows) * len(table.labels)


def may_have(text: str) -> bool:
    """Return whether a page with this text may have a table. Its words need not be placed to find out."""
    if sum(0 < len(line.strip()) < SHORT for line in text.split("\n")) >= SHORT_LINES:
        return True
    return len(_TWO_NUMBERS.findall(text)) >= LINES_OF_NUMBERS


def of_rows(page: int, rows: Sequence[Sequence[str]], box: Box | None) -> PageTable | None:
    """Return the table of an office file, or None if it has no two rows and columns."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    columns = max((len(row) for row in filled), default=0)
    used = [column for column in range(columns) if any(column < len(row) and row[column].strip() for row in filled)]
    if len(filled) < 2 or len(used) < 2:
        return None
    columns_left_out = max(0, len(used) - MOST_COLUMNS)
    used = used[:MOST_COLUMNS]
    most = min(MOST_ROWS, MOST_CELLS // len(used)) + 1
    kept = [[row[column] if column < len(row) else "" for column in used] for row in filled[:most]]
    has_header = _is_header(kept[0], kept[1:])
    labels = kept[0] if has_header else [""] * len(used)
    body = kept[1:] if has_header else kept[: most - 1]
    left_out = len(filled) - has_header - len(body)
    return PageTable(page, box, labels, body, rows_left_out=left_out, columns_left_out=columns_left_out)


def of_grid(page: int, grid: Grid, width: float, height: float) -> PageTable:
    """Return the table of a page. A text that spans rows is in each of them, and a header is above all its columns."""
    columns, headers = grid.columns, _header_rows(grid)
    above: list[list[str]] = [[] for _ in range(columns)]
    texts = [[""] * columns for _ in range(grid.rows - headers)]
    boxes: list[list[Box | None]] = [[None] * columns for _ in range(grid.rows - headers)]
    for cell in grid.cells:
        text = cell.text
        box = _shares(cell, width, height)
        if cell.top < headers:
            for column in range(cell.left, cell.right + 1):
                above[column].append(" ".join(text.split()))
            continue
        for row in range(cell.top - headers, cell.bottom - headers + 1):
            texts[row][cell.left], boxes[row][cell.left] = text, box
    labels = [" ".join(parts) for parts in above]
    starts = [min((box[0] for box in column if box), default=0.0) for column in zip(*boxes, strict=True)]
    most = min(MOST_ROWS, MOST_CELLS // columns)
    left, top, right, bottom = grid.box
    return PageTable(
        page,
        [round(left / width, 4), round(top / height, 4), round(right / width, 4), round(bottom / height, 4)],
        labels,
        texts[:most],
        boxes[:most],
        starts,
        max(0, len(texts) - most),
        last_page=page,
        last_bottom=bottom / height,
        pages=[page] * len(texts[:most]),
    )


def _shares(cell: Cell, width: float, height: float) -> Box:
    left, top, right, bottom = around(cell.words)
    return [round(left / width, 4), round(top / height, 4), round(right / width, 4), round(bottom / height, 4)]


def _header_rows(grid: Grid) -> int:
    """Return how many rows of the grid are headers."""
    if grid.headers:
        return min(grid.headers, grid.rows - 1)
    first = [cell for cell in grid.cells if cell.top == 0]
    if len(first) < 2 or any(kinds.is_value(cell.text) and not _is_year(cell.text) for cell in first):
        return 0
    # Below a header across columns is one for each of them.
    return min(max(cell.bottom + 1 + (cell.right > cell.left) for cell in first), grid.rows - 1)


def _is_year(text: str) -> bool:
    return re.fullmatch(r"(?:FY ?)?(?:19|20)\d\d", text.strip()) is not None


def _is_header(row: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of an office file names the columns: different texts, none of them a value."""
    texts = [text.strip() for text in row if text.strip()]
    if len(texts) < len(row) / 2 or len(set(texts)) < len(texts):
        return False
    return bool(rest) and not any(kinds.is_value(text) and not _is_year(text) for text in texts)


def _goes_on(before: PageTable, table: PageTable) -> bool:
    """Return whether a table continues the one before: on the next page, at its top, with the same columns."""
    if not (before.starts and table.starts and table.box) or len(before.starts) != len(table.starts):
        return False
    if table.page != before.last_page + 1 or before.last_bottom < ENDS_BELOW or table.box[1] > BEGINS_ABOVE:
        return False
    if any(abs(one - other) > SAME for one, other in zip(before.starts, table.starts, strict=True)):
        return False
    return table.labels == before.labels or not any(table.labels)


def _append(before: PageTable, table: PageTable) -> None:
    room = max(0, min(MOST_ROWS, MOST_CELLS // len(before.labels)) - len(before.rows))
    before.rows += table.rows[:room]
    before.boxes = (before.boxes or []) + (table.boxes or [])[:room]
    before.pages += table.pages[:room]
    before.rows_left_out += table.rows_left_out + len(table.rows[room:])
    before.last_page, before.last_bottom = table.last_page, table.last_bottom


def _typed(table: PageTable) -> dict[str, Any]:
    columns = kinds.read([[row[column] for row in table.rows] for column in range(len(table.labels))])
    names = _names(table.labels)
    rows = []
    for number, texts in enumerate(table.rows):
        page = table.pages[number] if table.pages else table.page
        boxes = table.boxes[number] if table.boxes else [None] * len(texts)
        rows.append(
            [
                {
                    "text": text[:LONGEST_TEXT],
                    "value": columns[column].values[number],
                    "page": page,
                    "box": boxes[column],
                }
                for column, text in enumerate(texts)
            ]
        )
    return {
        "page": table.page,
        "box": table.box,
        "columns": [
            {"name": each, "label": label[:LONGEST_LABEL], "kind": column.kind}
            for each, label, column in zip(names, table.labels, columns, strict=True)
        ],
        "rows": rows,
        "rows_left_out": table.rows_left_out,
        "columns_left_out": table.columns_left_out,
    }


def _names(labels: Sequence[str]) -> list[str]:
    """Return a different name for each column: its label in lower-case ASCII, or its number."""
    names: list[str] = []
    taken: set[str] = set()
    for number, label in enumerate(labels, 1):
        plain = unicodedata.normalize("NFKD", label.casefold().replace("ß", "ss")).encode("ascii", "ignore").decode()
        name = _NOT_IN_NAMES.sub("_", plain)[:LONGEST_NAME].strip("_") or f"column_{number}"
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        names.append(unique)
    return names
