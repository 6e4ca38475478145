"""Tables of documents: what a machine has read, and what people have corrected cell by cell."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from ade_understanding.tables import kinds
from documents.fields import clean_name, clean_value
from documents.models import CellCorrection, DocumentTable, TableRows

LONGEST_LABEL = 200
# Characters per cell.
LONGEST_TEXT = 2000
# Limits per document, above those of the reader. A process that reads documents may have been compromised.
MOST_TABLES = 1000
MOST_COLUMNS = 1000
MOST_CELLS = 400_000
# Cells per row of the database.
BLOCK_CELLS = 2000
# Names of tables and columns, which are part of addresses.
NAME = re.compile("[a-z0-9_]{1,100}")
KINDS = (kinds.TEXT, kinds.DECIMAL, kinds.AMOUNT, kinds.DATE, kinds.PERCENTAGE, "number")
_LAST = 2**31 - 1


@dataclass(frozen=True)
class Correction:
    text: str
    by: str
    at: datetime
    # What the machine had read then.
    machine_text: str


@dataclass(frozen=True)
class Column:
    name: str
    label: str
    kind: str

    @property
    def title(self) -> str:
        return self.label or self.name


@dataclass(frozen=True)
class Cell:
    machine_text: str
    machine_value: str | None = None
    page: int | None = None
    box: list[float] | None = None
    kind: str = kinds.TEXT
    correction: Correction | None = None

    @property
    def text(self) -> str:
        """The text that applies: the correction if there is one, otherwise the machine's text."""
        return self.correction.text if self.correction else self.machine_text

    @property
    def value(self) -> str | None:
        """The value of the text in the normal form of its kind; None if it has none."""
        if self.correction is None or self.correction.text == self.machine_text:
            return self.machine_value
        return kinds.value_of(self.kind, self.correction.text)

    @property
    def is_confirmed(self) -> bool:
        return self.correction is not None and self.correction.text == self.machine_text

    @property
    def is_read_anew(self) -> bool:
        """Whether the machine has read another text since the correction, so that it may concern another row."""
        return self.correction is not None and self.correction.machine_text != self.machine_text


@dataclass(frozen=True)
class Row:
    number: int
    cells: Sequence[Cell]


def columns_of(table: DocumentTable) -> list[Column]:
    return [Column(each["name"], each["label"], each["kind"]) for each in table.columns]


def rows_of(table: DocumentTable, first: int = 1, most: int = _LAST) -> Iterator[Row]:
    """Yield rows of a table from this one on, with the corrections of their cells."""
    last = min(first + most - 1, table.row_count)
    columns = columns_of(table)
    found = CellCorrection.objects.filter(document=table.document_id, table=table.name, row__gte=first, row__lte=last)
    corrections = {
        (each.row, each.column): Correction(each.text, each.corrected_by, each.corrected_at, each.machine_text)
        for each in found
    }

    def marked(number: int) -> list[tuple[Column, Correction | None]]:
        return [(column, corrections.get((number, column.name))) for column in columns]

    # The block that has the first row, and those after it up to the last one.
    size = _rows_per_block(len(columns))
    blocks = TableRows.objects.filter(table=table, first__gt=first - size, first__lte=last).order_by("first")
    for block in blocks.iterator(chunk_size=1):
        for number, cells in enumerate(block.rows, block.first):
            if first <= number <= last:
                yield Row(number, [_cell(cells[i : i + 1], *each) for i, each in enumerate(marked(number))])


def lines(tables: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what `keep` stores: for each table of a digest a line, and lines with its rows.

    Texts are cut to their limits, because a document can make them arbitrarily long. Raises ValueError for values that
    no document can cause.
    """
    names: set[str] = set()
    cells_left = MOST_CELLS
    for table in tables:
        columns = [_column(each) for each in table["columns"]]
        if len(columns) > MOST_COLUMNS or len({column["name"] for column in columns}) < len(columns) or not columns:
            raise ValueError(f"A table must have 1 to {MOST_COLUMNS:,} columns with different names.")
        name = _name(table["name"])
        rows = table["rows"]
        cells_left -= len(rows) * len(columns)
        if name in names or len(names) >= MOST_TABLES or cells_left < 0:
            raise ValueError(f"There are too many tables or cells, or two tables are named {name!r}.")
        names.add(name)
        yield {
            "name": name,
            "page": _page(table.get("page")),
            "box": _box(table.get("box")),
            "columns": columns,
            "row_count": len(rows),
            "rows_left_out": _count(table.get("rows_left_out", 0)),
            "columns_left_out": _count(table.get("columns_left_out", 0)),
        }
        size = _rows_per_block(len(columns))
        for start in range(0, len(rows), size):
            block = [[_packed(cell) for cell in row[: len(columns)]] for row in rows[start : start + size]]
            yield {"first": start + 1, "rows": block}


def keep(document_id: int, stored: Iterable[Mapping[str, Any]]) -> None:
    """Replace the tables of a document by these lines; corrections stay. The caller must have opened a transaction."""
    DocumentTable.objects.filter(document=document_id).delete()
    table: DocumentTable | None = None
    for is_block, group in groupby(stored, lambda line: "first" in line):
        if is_block:
            TableRows.objects.bulk_create((TableRows(table=table, **line) for line in group), batch_size=20)
            continue
        for line in group:
            table = DocumentTable.objects.create(document_id=document_id, **line)


def _rows_per_block(columns: int) -> int:
    return max(1, BLOCK_CELLS // columns)


def _column(column: Mapping[str, Any]) -> dict[str, str]:
    kind = str(column.get("kind") or kinds.TEXT)
    if kind not in KINDS:
        raise ValueError(f"The kind of a column must be one of {', '.join(KINDS)}, not {kind!r}.")
    label = clean_name(str(column.get("label") or ""))[:LONGEST_LABEL]
    return {"name": _name(column["name"]), "label": label, "kind": kind}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"A name must have 1 to 100 letters from a to z, digits and underscores, not {name!r}.")
    return name


def _packed(cell: Mapping[str, Any]) -> list[Any]:
    value = cell.get("value")
    parts = [
        clean_value(str(cell.get("text") or ""))[:LONGEST_TEXT],
        None if value is None else clean_value(str(value))[:LONGEST_TEXT],
        _page(cell.get("page")),
        _box(cell.get("box")),
    ]
    # Most cells of office files are only a text, and many have none.
    if parts[3] is None and parts[1] is None:
        return parts[:1] if parts[0] else []
    while parts[-1] is None:
        parts.pop()
    return parts


def _cell(stored: Sequence[Sequence[Any]], column: Column, correction: Correction | None) -> Cell:
    """Return a cell from the parts that `_packed` has kept of it, if any."""
    parts: list[Any] = list(stored[0]) if stored else []
    text, value, page, box = parts + ["", None, None, None][len(parts) :]
    return Cell(text, value, page, box, column.kind, correction)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LAST:
        raise ValueError(f"A number of rows or columns must be from 0 to {_LAST:,}, not {value!r}.")
    return value


def _page(page: Any) -> int | None:
    if page is None:
        return None
    if not isinstance(page, int) or isinstance(page, bool) or not 1 <= page <= _LAST:
        raise ValueError(f"The page of a table must be from 1 to {_LAST:,}, not {page!r}.")
    return page


def _box(box: Any) -> list[float] | None:
    if box is None:
        return None
    is_list = isinstance(box, Sequence) and not isinstance(box, str) and len(box) == 4
    if not is_list or not all(isinstance(each, int | float) and 0 <= each <= 1 for each in box):
        raise ValueError(f"The box of a table must be four numbers between 0 and 1, not {box!r}.")
    return [float(each) for each in box]
