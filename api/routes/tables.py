from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from api.callers import OPERATE, caller_of
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from documents import cell_corrections, table_exports, tables
from documents.cell_corrections import Place
from documents.corrections import InvalidCorrection
from documents.models import Document, DocumentTable
from documents.tables import LONGEST_TEXT, Cell

routes = Router(tags=["tables"])

MOST_ROWS = 200
FILES = {"responses": {200: {"description": "The whole table.", "content": {"*/*": {"schema": {}}}}}}


class ColumnOut(Out):
    name: str
    label: Annotated[str, Field(description="the header as it was read, which may be empty")]
    kind: str


class TableOut(Out):
    name: str
    page: int | None
    box: Annotated[list[float] | None, Field(description="left, top, right and bottom, as fractions of the page")]
    columns: list[ColumnOut]
    row_count: int
    rows_left_out: Annotated[int, Field(description="rows beyond the limit of a table, which are not kept")]
    columns_left_out: int


class TablesOut(Out):
    document_id: int
    items: list[TableOut]


class CellCorrectionOut(Out):
    text: str
    by: str
    at: datetime
    machine_text: Annotated[str, Field(description="what the machine had read when the cell was corrected")]


class CellOut(Out):
    text: Annotated[
        str, Field(description="current text: the correction if there is one, otherwise the extracted text")
    ]
    value: Annotated[
        str | None, Field(description="the text in the normal form of its column's kind, such as 1250.50 or 2026-05-01")
    ]
    machine_text: str
    page: int | None
    box: list[float] | None
    correction: CellCorrectionOut | None


class TableRowOut(Out):
    number: int
    cells: Annotated[list[CellOut], Field(description="one for each column")]


class TableRowsOut(Out):
    items: list[TableRowOut]
    next: Annotated[str | None, Field(description="`cursor` of the next page; null on the last one")]


class Window(Schema):
    model_config = ConfigDict(extra="forbid")

    cursor: Annotated[
        str, Field(pattern="^[0-9]{0,9}$", description="`next` of the previous page: the number of its last row")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="rows per page")] = 50


class Export(Schema):
    model_config = ConfigDict(extra="forbid")

    format: Literal["csv", "xlsx", "json"] = "csv"


class CellText(In):
    text: Annotated[str, Field(max_length=LONGEST_TEXT, description="text of the cell; empty: the cell is empty")]


@routes.get("/documents/{id:id}/tables", response=responses({200: TablesOut}))
def list_tables(request: HttpRequest, id: int) -> dict[str, Any]:
    """List the tables of a document."""
    document = caller_of(request).find(Document, id)
    return {"document_id": id, "items": [TableOut.of(table) for table in document.tables.order_by("pk")]}


@routes.get("/documents/{id:id}/tables/{name:name}", response=responses({200: TableOut}))
def show_table(request: HttpRequest, id: int, name: str) -> dict[str, Any]:
    """Show a table without its rows."""
    return TableOut.of(_table(request, id, name))


@routes.get("/documents/{id:id}/tables/{name:name}/rows", response=responses({200: TableRowsOut}))
def list_table_rows(request: HttpRequest, id: int, name: str, window: Query[Window]) -> dict[str, Any]:
    """List rows of a table in their order, with people's corrections."""
    table = _table(request, id, name)
    rows = list(tables.rows_of(table, int(window.cursor or 0) + 1, window.limit))
    items = [{"number": row.number, "cells": [_cell(cell) for cell in row.cells]} for row in rows]
    return {"items": items, "next": str(rows[-1].number) if rows and rows[-1].number < table.row_count else None}


@routes.get(
    "/documents/{id:id}/tables/{name:name}/export",
    response=responses({200: None}),
    openapi_extra=FILES,
    operation_id="export_table",
    summary="Export table",
)
def export_table(request: HttpRequest, id: int, name: str, export: Query[Export]) -> HttpResponse:
    """Download a table as CSV, XLSX or JSON. Numbers and dates are in their normal form."""
    file = table_exports.file_of(_table(request, id, name), export.format)
    disposition = f'attachment; filename="{file.name}"'
    return HttpResponse(file.data, file.content_type, headers={"Content-Disposition": disposition})


@routes.put(
    "/documents/{id:id}/tables/{name:name}/rows/{id:row}/{name:column}",
    response=responses({200: CellOut}, 410),
    auth=OPERATE,
)
def correct_cell(request: HttpRequest, id: int, name: str, row: int, column: str, body: CellText) -> dict[str, Any]:
    """Correct a cell. Sending the extracted text confirms it."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)
    place = Place(name, row, column)
    try:
        result = cell_corrections.correct(id, place, body.text, actor=caller.actor)
    except InvalidCorrection as refused:
        code = "gone" if refused.code == "purged" else "invalid_request"
        raise Problem(code, str(refused), {"reason": refused.code}) from refused
    if result is None:
        raise not_found("cell", str(place))
    return _found(id, place)


@routes.delete(
    "/documents/{id:id}/tables/{name:name}/rows/{id:row}/{name:column}",
    response=responses({200: CellOut}),
    auth=OPERATE,
)
def withdraw_cell(request: HttpRequest, id: int, name: str, row: int, column: str) -> dict[str, Any]:
    """Withdraw the correction of a cell. The extracted text applies again."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)
    place = Place(name, row, column)
    if not cell_corrections.withdraw(id, place, actor=caller.actor):
        raise not_found("correction", str(place))
    return _found(id, place)


def _table(request: HttpRequest, id: int, name: str) -> DocumentTable:
    document = caller_of(request).find(Document, id)
    table = document.tables.filter(name=name).first()
    if table is None:
        raise not_found("table", name)
    return table


def _found(id: int, place: Place) -> dict[str, Any]:
    """Return the cell. All of it is empty if only a correction was left of the cell, which has been withdrawn."""
    return _cell(cell_corrections.find(id, place) or Cell(""))


def _cell(cell: Cell) -> dict[str, Any]:
    correction = CellCorrectionOut.of(cell.correction) if cell.correction else None
    return CellOut.of(cell, correction=correction)
