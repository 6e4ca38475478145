"""What ADE has understood of the document of a run: its type, fields and tables.

Imported when a step asks for one of them, because every cold run waits for what the context imports.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any


class Field:
    """The value that applies for a field of the document. A person's correction replaces the machine's value."""

    __slots__ = ("box", "confidence", "kind", "name", "page", "reason", "source", "value")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]
        # Dates as 2026-11-18, amounts as 1511.30 EUR, IBANs and VAT ids without spaces.
        self.value: str = data["value"]
        # For example text, number, date or amount.
        self.kind: str = data.get("kind") or "text"
        # From 0 to 1, or None if the source gives none. A person is always sure.
        self.confidence: float | None = data.get("confidence")
        self.page: int | None = data.get("page")
        # Left, top, right and bottom, as fractions of the page measured from its top left corner.
        self.box: list[float] | None = data.get("box")
        # For example person, e-invoice, page or run 12.
        self.source: str = data.get("source") or ""
        self.reason: str = data.get("reason") or ""

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.value!r}, confidence={self.confidence}, source={self.source!r})"


class Type:
    """The type of the document, such as invoice."""

    __slots__ = ("confidence", "name")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]
        # None if a person has chosen the type.
        self.confidence: float | None = data.get("confidence")

    def __repr__(self) -> str:
        return f"Type({self.name!r}, confidence={self.confidence})"


class Cell:
    __slots__ = ("box", "page", "text", "value")

    def __init__(self, text: str, value: str | None, page: int | None, box: list[float] | None) -> None:
        # As it is printed, or as a person has corrected it.
        self.text = text
        # The text in the normal form of its column's kind, such as 1234.56; None if it has none.
        self.value = value
        self.page, self.box = page, box

    def __repr__(self) -> str:
        return f"Cell({self.text!r}, {self.value!r})"


class Column:
    __slots__ = ("kind", "label", "name")

    def __init__(self, data: Mapping[str, str]) -> None:
        self.name, self.label, self.kind = data["name"], data["label"], data["kind"]

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.label!r}, {self.kind!r})"


class Table:
    """A table of the document. Each row is a dictionary from the names of the columns to cells."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        # For example line_items or table_1.
        self.name: str = data["name"]
        self.page: int | None = data.get("page")
        self.box: list[float] | None = data.get("box")
        self.columns = [Column(each) for each in data["columns"]]
        self.rows: list[dict[str, Cell]] = []
        # How many rows limits have left out.
        self.rows_left_out: int = data.get("rows_left_out", 0)

    def add(self, cells: Sequence[Sequence[Any]]) -> None:
        """Add a row. The engine calls this."""
        named = zip(self.columns, cells, strict=True)
        self.rows.append({column.name: Cell(*cell) for column, cell in named})

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self.columns)} columns, {len(self.rows)} rows)"


class Word:
    """A word on a page, and its place: left, top, right and bottom as fractions of the page."""

    __slots__ = ("box", "text")

    def __init__(self, text: str, box: list[float]) -> None:
        self.text, self.box = text, box

    def __repr__(self) -> str:
        return f"Word({self.text!r}, {self.box})"


def words_in(path: Path) -> dict[int, list[Word]]:
    import gzip  # noqa: PLC0415  # not needed by every run that asks for fields

    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {page["number"]: [Word(text, box[:4]) for text, *box in page["words"]] for page in json.load(file)}


def fields_in(path: Path) -> dict[str, Field]:
    return {data["name"]: Field(data) for data in _lines(path)}


def tables_in(path: Path) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for line in _lines(path):
        # An object begins a table, and each list after it is a row of that table.
        if isinstance(line, dict):
            table = tables[line["name"]] = Table(line)
        else:
            table.add(line)
    return tables


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
