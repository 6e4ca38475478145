"""Reports what was found and changed, for programs and for people."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cleaning import Changes
from tables import Column, Table

MISFITS_TO_SHOW = 20


def for_programs(table: Table, changes: Changes, file: str) -> dict[str, Any]:
    return {
        "sheet": table.sheet.name,
        "read_as": table.sheet.how,
        "file": file,
        "titles": table.titles,
        "header_row": table.header_row,
        "rows": table.rows,
        "dropped": {"empty_rows": table.empty_rows, "empty_columns": table.empty_columns},
        "columns": [_column(column, changes) for column in table.columns],
        "changes": dict(changes.counts),
        "misfits": [asdict(misfit) for misfit in changes.misfits],
    }


def for_people(table: Table, changes: Changes, file: str) -> str:
    return "\n".join(_lines(table, changes, file)) + "\n"


def _column(column: Column, changes: Changes) -> dict[str, Any]:
    return {
        "column": column.letters,
        "name": column.name,
        "original_name": column.original_name,
        "type": column.kind,
        "filled": column.filled,
        "misfits": changes.misfits_by_column[column.name],
    }


def _lines(table: Table, changes: Changes, file: str) -> Iterator[str]:
    yield f"Sheet “{table.sheet.name}” ({table.sheet.how}) → {file}"
    yield f"  {table.rows} rows, {len(table.columns)} columns; {_header(table)}"
    if table.titles:
        yield f"  lines above the table, left out: {' / '.join(table.titles)}"
    if table.empty_rows or table.empty_columns:
        yield f"  dropped: empty rows {table.empty_rows}, empty columns {table.empty_columns}"
    for what, count in changes.counts.items():
        if count:
            yield f"  {what}: {count}"
    for column in table.columns:
        yield _column_line(column, changes)
    yield from _misfit_lines(changes)


def _header(table: Table) -> str:
    return f"header in row {table.header_row}" if table.header_row else "no header found: columns are named by letters"


def _column_line(column: Column, changes: Changes) -> str:
    renamed = f" (was “{column.original_name}”)" if column.name != column.original_name else ""
    misfits = changes.misfits_by_column[column.name]
    unfit = f", {misfits} that do not fit" if misfits else ""
    unsure = "; day and month could be swapped" if column.has_open_dates else ""
    return f"  {column.letters}: {column.name}{renamed}: {column.kind}, {column.filled} filled{unfit}{unsure}"


def _misfit_lines(changes: Changes) -> Iterator[str]:
    for misfit in changes.misfits[:MISFITS_TO_SHOW]:
        yield f"  {misfit.place}: “{misfit.column}” has the type {misfit.expected}, but this cell is “{misfit.found}”"
    if (total := changes.misfits_by_column.total()) > MISFITS_TO_SHOW:
        yield f"  … and {total - MISFITS_TO_SHOW} more; the first {len(changes.misfits)} are in report.json"
