"""Writes what ADE has understood of a document, its fields, tables and words, to files for the engine of a run.

`programs/ade_engine/understood.py` reads them. Each line is JSON: a field, an object that begins a table, or a row of
that table. The words are one compressed file, as `documents/words.py` stores it.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from documents import fields as document_fields
from documents import tables as document_tables
from documents import words
from documents.models import DocumentTable

FIELDS, TABLES, WORDS = "document-fields.jsonl", "document-tables.jsonl", "document-words.json.gz"
# Characters of the rows of all tables. Further rows are left out.
MOST_CHARACTERS = 64 << 20
# The source of corrected fields.
PERSON = "person"

# A table without its rows, and the rows: lists of cells, each with text, value, page and box.
Table = tuple[dict[str, Any], Iterable[Sequence[Sequence[Any]]]]


class Parts(NamedTuple):
    """Which parts a document has."""

    fields: bool
    tables: bool
    # The processing job whose words are stored.
    words_job: int | None = None


def write(directory: Path, document_id: int, parts: Parts) -> dict[str, str]:
    """Write the files of a stored document. Return their names for the engine's input."""
    files = _write_fields(directory, _fields(document_id)) if parts.fields else {}
    files |= _write_tables(directory, _tables(document_id)) if parts.tables else {}
    has_words = parts.words_job is not None and words.copy(parts.words_job, directory / WORDS)
    return files | ({"words": WORDS} if has_words else {})


def write_digest(directory: Path, digest: Mapping[str, Any]) -> dict[str, str]:
    """Write the files of a document that is not stored, from the output of the reader."""
    fields, tables = of_digest(digest)
    with gzip.open(directory / WORDS, "wt", encoding="utf-8") as file:
        json.dump(digest.get("words", []), file)
    return _write_fields(directory, fields) | _write_tables(directory, tables) | {"words": WORDS}


def of_digest(digest: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Table]]:
    """Return the fields and tables in the output of the reader. Of several values of a field, the surest applies."""
    fields: dict[str, Mapping[str, Any]] = {}
    for field in sorted(digest["fields"], key=lambda field: field.get("confidence") or 0):
        fields[field["name"]] = field
    tables: list[Table] = []
    for table in digest.get("tables", ()):
        head = {name: value for name, value in table.items() if name != "rows"}
        tables.append((head, [_cells(row, len(table["columns"])) for row in table["rows"]]))
    return list(fields.values()), tables


def _write_fields(directory: Path, fields: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    with (directory / FIELDS).open("w", encoding="utf-8") as file:
        file.writelines(map(_line, fields))
    return {"fields": FIELDS}


def _write_tables(directory: Path, tables: Iterable[Table]) -> dict[str, str]:
    room = MOST_CHARACTERS
    with (directory / TABLES).open("w", encoding="utf-8") as file:
        for head, rows in tables:
            lines = []
            left_out = head.get("rows_left_out", 0)
            for row in rows:
                line = _line(row)
                room -= len(line)
                if room >= 0:
                    lines.append(line)
                else:
                    left_out += 1
            file.write(_line({**head, "rows_left_out": left_out}))
            file.writelines(lines)
    return {"tables": TABLES}


def _cells(row: Sequence[Mapping[str, Any]], columns: int) -> list[list[Any]]:
    """Return the cells of a row in the digest, which has no empty cells at its end."""
    cells = [[cell.get("text") or "", *(cell.get(name) for name in ("value", "page", "box"))] for cell in row]
    return cells + [["", None, None, None]] * (columns - len(row))


def _fields(document_id: int) -> Iterator[dict[str, Any]]:
    for row in document_fields.of_document(document_id):
        names = ("name", "value", "kind", "confidence", "page", "box", "source", "reason")
        field = {name: getattr(row, name) for name in names}
        if row.correction:
            reason = f"Corrected by {row.correction.by}."
            field |= {"confidence": 1.0, "source": PERSON, "reason": reason}
        yield field


def _tables(document_id: int) -> Iterator[Table]:
    for table in DocumentTable.objects.filter(document=document_id).order_by("id"):
        names = ("name", "page", "box", "columns", "rows_left_out")
        rows = document_tables.rows_of(table)
        cells = ([[cell.text, cell.value, cell.page, cell.box] for cell in row.cells] for row in rows)
        yield {name: getattr(table, name) for name in names}, cells


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
