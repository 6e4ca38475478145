"""Finds the table in a sheet: its header, its columns and their types."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import values
from reading import Sheet
from values import Cell, Conventions

# Titles and the header are searched for in this many rows.
ROWS_TO_LOOK_AT = 40
# A header names at least this share of the columns.
HEADER_SHARE = 0.6
# A column has a type if this share of its cells fits. The others are reported.
TYPE_SHARE = 0.8

_EMPTY = Cell("")
_HAS_DIGIT = re.compile(r"\d").search
# All types except text, narrowest first, and two conventions that cover both ways to read numbers and dates.
_NARROW = (values.BOOLEAN, values.INTEGER, values.DECIMAL, values.DATE)
_WAYS = (Conventions(".", month_first=False), Conventions(",", month_first=True))

Progress = Callable[[int], None]


@dataclass
class Column:
    index: int
    name: str = ""
    original_name: str = ""
    filled: int = 0
    kind: str = values.TEXT
    conventions: Conventions = field(default_factory=Conventions)
    has_open_dates: bool = False

    @property
    def letters(self) -> str:
        """The name in a spreadsheet: A, …, Z, AA."""
        number, letters = self.index + 1, ""
        while number:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord("A") + rest) + letters
        return letters


@dataclass
class Table:
    sheet: Sheet
    # Counted from 1; None if there is no header.
    header_row: int | None
    titles: list[str]
    columns: list[Column]
    rows: int = 0
    last_row: int = 0
    empty_rows: int = 0
    empty_columns: int = 0

    @property
    def first_row(self) -> int:
        return self.header_row + 1 if self.header_row else 1

    def cells(self) -> Iterator[tuple[int, list[Cell]]]:
        """Yield the non-empty rows below the header with their row number."""
        for number, row in enumerate(self.sheet.rows(), 1):
            cells = as_cells(row) if number >= self.first_row else []
            if _filled(cells):
                yield number, [cells[column.index] if column.index < len(cells) else _EMPTY for column in self.columns]


@dataclass
class _Counts:
    """Counts the possible types of one column's cells."""

    filled: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    decimal_marks: Counter[str] = field(default_factory=Counter)
    month_first: Counter[bool] = field(default_factory=Counter)
    open_dates: int = 0

    def add(self, cell: Cell) -> None:
        self.filled += 1
        self.kinds.update(_kinds_of(cell))
        if cell.typed is None and _HAS_DIGIT(cell.text):
            self.decimal_marks.update(filter(None, [values.decimal_mark_of(cell.text)]))
            self.month_first.update(each for each in [values.month_first_of(cell.text)] if each is not None)
            self.open_dates += values.is_open_date(cell.text)

    def kind(self) -> str:
        """Return the narrowest type that fits most cells."""
        return next((kind for kind in _NARROW if self.kinds[kind] >= TYPE_SHARE * self.filled), values.TEXT)

    def conventions(self) -> Conventions:
        mark = "," if self.decimal_marks[","] > self.decimal_marks["."] else "."
        return Conventions(mark, self.month_first[True] > self.month_first[False])


def as_cells(row: list[object]) -> list[Cell]:
    return [values.cell(value) for value in row]


def examine(sheet: Sheet, progress: Progress) -> Table:
    """Read all rows once and keep only counts."""
    header_row, titles, names = _find_header(sheet)
    table = Table(sheet, header_row, titles, [])
    counts: list[_Counts] = []
    for number, row in enumerate(sheet.rows(), 1):
        progress(number)
        if number < table.first_row:
            continue
        cells = as_cells(row)
        if not _filled(cells):
            table.empty_rows += 1
            continue
        table.rows, table.last_row = table.rows + 1, number
        counts.extend(_Counts() for _ in range(len(cells) - len(counts)))
        for count, cell in zip(counts, cells, strict=False):
            if not cell.is_empty:
                count.add(cell)
    table.columns = _columns(counts, names)
    table.empty_columns = max(len(counts), len(names)) - len(table.columns)
    return table


def _find_header(sheet: Sheet) -> tuple[int | None, list[str], list[Cell]]:
    """Return the first row that names most columns, and the titles above it."""
    first_rows = [as_cells(row) for row, _ in zip(sheet.rows(), range(ROWS_TO_LOOK_AT), strict=False)]
    width = max((_filled(row) for row in first_rows), default=0)
    for number, row in enumerate(first_rows, 1):
        names_most = _filled(row) >= max(1, HEADER_SHARE * width)
        is_text = not any(_kinds_of(cell) for cell in row if not cell.is_empty)
        if names_most and is_text and any(_filled(below) for below in first_rows[number:]):
            titles = [" ".join(cell.text for cell in above if not cell.is_empty) for above in first_rows[: number - 1]]
            return number, [title for title in titles if title], row
    return None, [], []


def _filled(row: list[Cell]) -> int:
    return sum(not cell.is_empty for cell in row)


# Columns repeat values.
@lru_cache(maxsize=50_000)
def _kinds_of(cell: Cell) -> tuple[str, ...]:
    """Return all types except text that fit the cell in either convention."""
    return tuple(kind for kind in _NARROW if any(values.read(cell, kind, way) is not None for way in _WAYS))


def _columns(counts: list[_Counts], names: list[Cell]) -> list[Column]:
    """Return the columns that have a name or a filled cell, each with a unique name."""
    columns: list[Column] = []
    names_in_use: set[str] = set()
    for index, count in enumerate(counts):
        original_name = names[index].text if index < len(names) else ""
        if not count.filled and not original_name:
            continue
        kind = count.kind() if count.filled else values.TEXT
        has_open_dates = kind == values.DATE and count.open_dates > 0 and not count.month_first
        column = Column(index, "", original_name, count.filled, kind, count.conventions(), has_open_dates)
        base = original_name or f"column {column.letters}"
        column.name, suffix = base, 2
        while column.name.casefold() in names_in_use:
            column.name, suffix = f"{base} {suffix}", suffix + 1
        names_in_use.add(column.name.casefold())
        columns.append(column)
    return columns
