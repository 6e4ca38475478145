"""Cleans spreadsheets: writes one typed CSV per sheet and a report of the changes.

Every sheet is read twice, row by row: first to detect its columns, then to write it. A large file needs little memory.
"""

import json
import re
from functools import partial

import reading
from cleaning import Changes, cleaned_rows
from reporting import Output, for_people, for_programs
from tables import Table, examine

from ade_engine import Context, Rejected, step

LONGEST_FILE_NAME = 60


@step
def read(ctx: Context) -> None:
    name, content_type, path = ctx.document.name, ctx.document.content_type, ctx.document.path
    if path is None:
        raise Rejected(f"{name} has no stored file.")
    if content_type == "application/pdf" or content_type.startswith(("image/", "audio/", "video/")):
        raise Rejected(f"{name} is not a spreadsheet (xlsx, xls, ods or csv) but {content_type}.")
    try:
        ctx.data["sheets"] = reading.open_sheets(path, name)
    except reading.Unreadable as error:
        raise Rejected(f"{name}: {error}") from error
    for sheet in ctx.data["sheets"]:
        ctx.log(f"sheet {sheet.name}: {sheet.how}, {sheet.height if sheet.height is not None else 'unknown'} rows")


@step
def examine_columns(ctx: Context) -> None:
    tables: list[Table] = []
    for sheet in ctx.data["sheets"]:
        table = examine(sheet, partial(ctx.progress, total=sheet.height))
        kinds = ", ".join(f"{column.name}: {column.kind}" for column in table.columns)
        ctx.log(f"sheet {sheet.name}: {table.rows} rows; {kinds or 'nothing in it'}")
        tables.append(table)
    ctx.data["tables"] = [table for table in tables if table.rows]
    if not ctx.data["tables"]:
        raise Rejected(f"{ctx.document.name} contains no table: its sheets ({len(tables)}) are empty.")


@step
def write(ctx: Context) -> None:
    outputs: list[Output] = []
    for table in ctx.data["tables"]:
        base = re.sub(r"[^A-Za-z0-9_-]+", "-", table.sheet.name).strip("-")[:LONGEST_FILE_NAME] or "sheet"
        name, number = base, 2
        while any(output.file == f"{name}.csv" for output in outputs):
            name, number = f"{base}-{number}", number + 1
        changes = Changes()
        rows = cleaned_rows(table, changes, partial(ctx.progress, total=table.last_row))
        ctx.table(name, [column.name for column in table.columns], rows)
        outputs.append(Output(table, changes, f"{name}.csv"))
    ctx.data["outputs"] = outputs


@step
def report(ctx: Context) -> None:
    outputs: list[Output] = ctx.data["outputs"]
    data = {"document": ctx.document.name, "sheets": [for_programs(output) for output in outputs]}
    ctx.artifact("report.json", json.dumps(data, indent=2, ensure_ascii=False))
    ctx.artifact("report.txt", "\n".join(for_people(output) for output in outputs))
    ctx.field("sheets", len(outputs))
    ctx.field("rows", sum(output.table.rows for output in outputs))
    ctx.field("columns", sum(len(output.table.columns) for output in outputs))
    ctx.field("cells_changed", sum(output.changes.counts.total() for output in outputs))
    misfits = sum(output.changes.misfits_by_column.total() for output in outputs)
    ctx.field("cells_that_do_not_fit", misfits)
    if misfits:
        ctx.log(f"{misfits} cells do not fit the type of their column: see report.txt", "warning")
