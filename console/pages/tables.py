"""The page of a table of a document, on which people look at rows and correct cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import boxes, formatting, lists
from console.boxes import Box
from console.frame import act, actor_of, back, find, must_operate, page, show
from documents import cell_corrections, previews, table_exports, tables
from documents.cell_corrections import Place
from documents.corrections import InvalidCorrection
from documents.models import Document, DocumentTable
from documents.tables import LONGEST_TEXT, Cell, Column
from workspaces.models import Workspace

ROWS = 50


@dataclass(frozen=True)
class ShownCell:
    cell: Cell
    column: Column
    row: int
    # The address of the page on which this cell can be corrected; empty for users who may not.
    link: str
    is_chosen: bool

    @property
    def is_long(self) -> bool:
        return boxes.is_long(self.cell.text)


@dataclass(frozen=True)
class Mark:
    """A box on the picture of a page: of the table, or of the chosen cell."""

    number: int
    label: str
    tone: str
    box: Box


@page
def table(request: HttpRequest, id: int, name: str) -> HttpResponseBase:
    operated = Workspace.objects.operated_by(request.user).filter(pk=OuterRef("workspace_id"))
    document: Document = find(request, Document.objects.listed().annotate(may=Exists(operated)), id, "document")
    table = _table(document, name)
    may = getattr(document, "may", False) and document.purged_at is None
    row, column = lists.number(request.GET.get("row")) or 0, request.GET.get("column", "")
    wanted = lists.number(request.GET.get("first")) or row or 1
    # Rows are shown in the same groups, whichever of them is wanted.
    first = (min(wanted, max(table.row_count, 1)) - 1) // ROWS * ROWS + 1
    columns = tables.columns_of(table)
    chosen_at = (row, column) if may else None
    rows = [
        (each.number, [_shown(*pair, each.number, chosen_at) for pair in zip(each.cells, columns, strict=True)])
        for each in tables.rows_of(table, first, ROWS)
    ]
    chosen = next((cell for _, cells in rows for cell in cells if cell.is_chosen), None)
    number = (chosen.cell.page if chosen else None) or table.page
    context = {
        "document": document,
        "table": table,
        "columns": columns,
        "rows": rows,
        "first": first,
        "last": first + len(rows) - 1,
        "before": max(first - ROWS, 0),
        "after": first + ROWS if first + ROWS <= table.row_count else 0,
        "may": may,
        "longest": LONGEST_TEXT,
        "forms": list(table_exports.FORMS),
        "number": number,
        "picture": _picture(document, number),
        "marks": _marks(table, chosen, number),
    }
    return show(request, "console/table.html", f"{table.name} of document {id}", context)


@page
def export(request: HttpRequest, id: int, name: str, form: str) -> HttpResponseBase:
    document: Document = find(request, Document.objects.listed(), id, "document")
    if form not in table_exports.FORMS:
        raise Http404(f"There is no form {form!r}. Forms: {', '.join(table_exports.FORMS)}.")
    file = table_exports.file_of(_table(document, name), form)
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', "Cache-Control": "private, no-store"}
    return HttpResponse(file.data, file.content_type, headers=headers)


@act
def correct(request: HttpRequest, id: int) -> HttpResponseBase:
    place = _place(request, id)
    try:
        result = cell_corrections.correct(id, place, request.POST.get("text", ""), actor=actor_of(request))
    except InvalidCorrection as error:
        messages.error(request, formatting.after("The correction was not saved", str(error)))
    else:
        if result is None:
            messages.warning(request, f"The correction was not saved: there is no cell {place} any more.")
        else:
            messages.success(request, str(result))
    return back(request, reverse("console:document", args=[id]))


@act
def withdraw(request: HttpRequest, id: int) -> HttpResponseBase:
    place = _place(request, id)
    if cell_corrections.withdraw(id, place, actor=actor_of(request)):
        messages.success(request, f"Withdrew the correction of {place}.")
    else:
        messages.warning(request, f"There is no correction of {place} to withdraw.")
    return back(request, reverse("console:document", args=[id]))


def _place(request: HttpRequest, id: int) -> Place:
    document: Document = find(request, Document.objects.listed(), id, "document")
    must_operate(request, document.workspace_id)
    texts = {name: request.POST.get(name, "") for name in ("table", "row", "column")}
    return Place(texts["table"][:100], lists.number(texts["row"]) or 0, texts["column"][:100])


def _table(document: Document, name: str) -> DocumentTable:
    table: DocumentTable | None = document.tables.filter(name=name).first()
    if table is None:
        raise Http404(f"Document {document.pk} has no table {name!r}.")
    return table


def _shown(cell: Cell, column: Column, row: int, chosen_at: tuple[int, str] | None) -> ShownCell:
    """Return a cell for the page. `chosen_at` is None for users who may not correct cells."""
    link = "" if chosen_at is None else f"?{urlencode({'row': row, 'column': column.name})}#cell"
    return ShownCell(cell, column, row, link, chosen_at == (row, column.name))


def _picture(document: Document, number: int | None) -> str:
    if number is None or not previews.can_draw(document) or previews.failure_reason(document, number):
        return ""
    return reverse("console:document_page", args=[document.pk, number])


def _marks(table: DocumentTable, chosen: ShownCell | None, number: int | None) -> Sequence[Any]:
    marks = []
    if table.page == number and (box := boxes.box_of(table.box)):
        marks.append(Mark(1, table.name, "busy", box))
    if chosen and (box := boxes.box_of(chosen.cell.box)):
        marks.append(Mark(2, f"{chosen.column.title}: {chosen.cell.text[: boxes.LONG]}", "warn", box))
    return marks
