"""The subcommand of `manage.py document` for tables."""

from pathlib import Path
from typing import Any

from documents import table_exports, tables
from documents.models import Document, DocumentTable
from work.operations.commands import AddVerb, Answer, Exit, Failure, add_ids, limit, not_found, table

SHOWN = ("name", "page", "columns", "rows", "rows_left_out")


def add_verbs(add: AddVerb) -> None:
    showing = add("tables", show, "List the tables of a document, show the rows of one, or write it to a file.")
    add_ids(showing)
    showing.add_argument("name", metavar="NAME", nargs="?", help="name of a table, such as table_1")
    showing.add_argument("--first", metavar="ROW", type=limit, default=1, help="first row (default: 1)")
    showing.add_argument("--rows", type=limit, default=50, help="maximum number of rows (default: 50)")
    showing.add_argument(
        "--export", metavar="FILE", type=Path, help="write the whole table to this file: .csv, .xlsx or .json"
    )


def show(*, id: int, name: str | None, first: int, rows: int, export: Path | None, **_: Any) -> Answer:
    if not Document.objects.filter(pk=id).exists():
        raise not_found("document", id, "`manage.py document list` shows them")
    found = DocumentTable.objects.filter(document=id).order_by("pk")
    if name is None:
        if export is not None:
            raise Failure("Name the table to export. `manage.py document tables ID` lists them.", Exit.USAGE, "usage")
        listed = [_values_of(each) | {"columns": each.columns} for each in found]
        counted = [_values_of(each) | {"columns": len(each.columns)} for each in found]
        return Answer({"id": id, "tables": listed}, table(counted, *SHOWN))
    one = found.filter(name=name).first()
    if one is None:
        raise not_found("table", name, f"`manage.py document tables {id}` shows them")
    if export is not None:
        return _export(one, export)
    columns = tables.columns_of(one)
    shown = [
        {"row": row.number} | {c.name: cell.text for c, cell in zip(columns, row.cells, strict=True)}
        for row in tables.rows_of(one, first, rows)
    ]
    data = _values_of(one) | {"id": id, "columns": one.columns, "shown": shown}
    return Answer(data, table(shown, "row", *(column.name for column in columns)))


def _export(one: DocumentTable, path: Path) -> Answer:
    form = path.suffix.removeprefix(".")
    if form not in table_exports.FORMS:
        known = ", ".join(f".{each}" for each in table_exports.FORMS)
        raise Failure(f"{path} has no ending of a table. Use one of {known}.", Exit.USAGE, "usage")
    file = table_exports.file_of(one, form)
    try:
        # An existing file is kept.
        with path.open("xb") as target:
            target.write(file.data)
    except OSError as error:
        raise Failure(f"Could not write {path}: {error}", Exit.REFUSED, "not_written") from error
    data = {"id": one.document_id, "name": one.name, "file": str(path), "size_bytes": len(file.data)}
    return Answer(data, f"Wrote {one.name} to {path} ({len(file.data):,} bytes).")


def _values_of(one: DocumentTable) -> dict[str, Any]:
    return {
        "name": one.name,
        "page": one.page,
        "rows": one.row_count,
        "rows_left_out": one.rows_left_out,
        "columns_left_out": one.columns_left_out,
    }
