"""Cleans spreadsheets: writes one typed CSV per sheet and a report of the changes.

Every sheet is read twice, row by row: first to detect its columns, then to write it. A large file needs little memory.
"""

import json
import re

import reading
from cleaning import Changes, cleaned_rows
from reporting import for_people, for_programs
from tables import Table, examine

from ade_engine import Context, Rejected, step

LONGEST_FILE_NAME = 60


@step
def read(ctx: Context) -> None:
    if ctx.document.path is None:
        raise Rejected(f"{ctx.document.name} has no stored file.")
    _reject_other_documents(ctx)
    try:
        ctx.data["sheets"] = reading.open_sheets(ctx.document.path, ctx.document.name)
    except reading.Unreadable as error:
        raise Rejected(f"{ctx.document.name}: {error}") from error
    for sheet in ctx.data["sheets"]:
        ctx.log(f"sheet {sheet.name}: {sheet.how}, {sheet.height if sheet.height is not None else 'unknown'} rows")


@step
def examine_columns(ctx: Context) -> None:
    tables = [_examined(ctx, sheet) for sheet in ctx.data["sheets"]]
    ctx.data["tables"] = [table for table in tables if table.rows]
    if not ctx.data["tables"]:
        raise Rejected(f"{ctx.document.name} contains no table: its sheets ({len(tables)}) are empty.")


@step
def write(ctx: Context) -> None:
    written: list[tuple[Table, Changes, str]] = []
    for table in ctx.data["tables"]:
        name = _file_name(table.sheet.name, {file for _, _, file in written})
        changes = _written(ctx, table, name)
        written.append((table, changes, f"{name}.csv"))
    ctx.data["written"] = written


@step
def report(ctx: Context) -> None:
    written: list[tuple[Table, Changes, str]] = ctx.data["written"]
    sheets = [for_programs(table, changes, file) for table, changes, file in written]
    ctx.artifact(
        "report.json", json.dumps({"document": ctx.document.name, "sheets": sheets}, indent=2, ensure_ascii=False)
    )
    ctx.artifact("report.txt", "\n".join(for_people(*each) for each in written))
    ctx.field("sheets", len(written))
    ctx.field("rows", sum(table.rows for table, _, _ in written))
    ctx.field("columns", sum(len(table.columns) for table, _, _ in written))
    ctx.field("cells_changed", sum(changes.counts.total() for _, changes, _ in written))
    misfits = sum(changes.misfits_by_column.total() for _, changes, _ in written)
    ctx.field("cells_that_do_not_fit", misfits)
    if misfits:
        ctx.log(f"{misfits} cells do not fit the type of their column: see report.txt", "warning")


def _reject_other_documents(ctx: Context) -> None:
    kind = ctx.document.content_type
    if kind == "application/pdf" or kind.startswith(("image/", "audio/", "video/")):
        raise Rejected(f"{ctx.document.name} is not a spreadsheet (xlsx, xls, ods or csv) but {kind}.")


def _examined(ctx: Context, sheet: reading.Sheet) -> Table:
    table = examine(sheet, lambda row: ctx.progress(row, sheet.height))
    kinds = ", ".join(f"{column.name}: {column.kind}" for column in table.columns)
    ctx.log(f"sheet {sheet.name}: {table.rows} rows; {kinds or 'nothing in it'}")
    return table


def _written(ctx: Context, table: Table, name: str) -> Changes:
    changes = Changes()
    rows = cleaned_rows(table, changes, lambda row: ctx.progress(row, table.last_row))
    ctx.table(name, [column.name for column in table.columns], rows)
    return changes


def _file_name(sheet_name: str, taken: set[str]) -> str:
    """Return a valid file name that is not taken yet."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", sheet_name).strip("-")[:LONGEST_FILE_NAME] or "sheet"
    name, number = base, 2
    while f"{name}.csv" in taken:
        name, number = f"{base}-{number}", number + 1
    return name
