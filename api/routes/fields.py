from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import OPERATE, caller_of
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from api.ids import Id
from api.pages import Listing, Page, page
from documents import corrections, fields
from documents.corrections import InvalidCorrection
from documents.fields import LONGEST_NAME, LONGEST_VALUE, FieldRow
from documents.models import Document, DocumentField
from workspaces.models import Workspace

routes = Router(tags=["fields"])


class CorrectionOut(Out):
    value: str
    by: str
    at: datetime


BoxOut = Annotated[list[float] | None, Field(description="left, top, right and bottom, as fractions of the page")]
SourceOut = Annotated[str | None, Field(description="e-invoice, page, service, sender, or the run as in “run 12”")]


class SourceValueOut(Out):
    source: SourceOut
    value: str
    confidence: float | None
    page: int | None
    box: BoxOut
    reason: str


class DocumentFieldOut(Out):
    name: str
    value: Annotated[
        str, Field(description="current value: the correction if there is one, otherwise the extracted value")
    ]
    machine_value: str | None
    kind: str | None
    confidence: float | None
    page: int | None
    box: BoxOut
    source: SourceOut
    reason: Annotated[str, Field(description="why the source gives this value")]
    in_conflict: Annotated[bool, Field(description="another source is sure of a different value")]
    to_review: Annotated[bool, Field(description="unsure or in conflict, and not corrected")]
    also_found: Annotated[bool, Field(description="a value with a label that is no field of the document's type")]
    others: Annotated[list[SourceValueOut], Field(description="values of other sources, which do not apply")]
    correction: CorrectionOut | None
    agrees: bool | None


class DocumentFieldsOut(Out):
    document_id: int
    items: list[DocumentFieldOut]


class FieldFoundOut(Out):
    id: int
    document_id: int
    name: str
    machine_value: str
    kind: str
    confidence: float | None
    page: int | None
    box: list[float] | None
    source: str
    reason: str
    in_conflict: bool
    to_review: bool
    also_found: bool
    correction: str | None
    corrected_by: str | None


class Fields(Listing):
    state: Annotated[
        Literal["to_look_at", "corrected"] | None,
        Field(description="only uncertain fields that need review, or only corrected fields"),
    ] = None
    workspace_id: Id | None = None
    document_id: Id | None = None
    name: Annotated[str | None, Field(max_length=LONGEST_NAME)] = None


class Correction(In):
    value: Annotated[str, Field(max_length=LONGEST_VALUE, description="value of the field; empty: the field is absent")]


@routes.get("/fields", response=responses({200: Page[FieldFoundOut]}))
def list_fields(request: HttpRequest, listing: Query[Fields]) -> dict[str, Any]:
    """List the extracted fields of all documents that you can see."""
    caller = caller_of(request)
    rows = DocumentField.objects.for_user(caller.user).chosen().with_corrections()
    if listing.workspace_id is not None:
        rows = rows.filter(document__workspace=caller.find(Workspace, listing.workspace_id))
    if listing.document_id is not None:
        rows = rows.filter(document=caller.find(Document, listing.document_id))
    rows = rows.filter(name=listing.name) if listing.name is not None else rows
    rows = rows.to_look_at() if listing.state == "to_look_at" else rows
    rows = rows.corrected() if listing.state == "corrected" else rows
    return page(rows, listing, lambda field: FieldFoundOut.of(field, machine_value=field.value))


@routes.get("/documents/{id:id}/fields", response=responses({200: DocumentFieldsOut}))
def show_fields(request: HttpRequest, id: int) -> dict[str, Any]:
    """List the fields of a document in its order, then the fields that only people have added."""
    document = caller_of(request).find(Document, id)
    return {"document_id": id, "items": [_values_of(row) for row in fields.of_document(document.pk)]}


@routes.put("/documents/{id:id}/fields/{path:name}", response=responses({200: DocumentFieldOut}, 410), auth=OPERATE)
def correct(request: HttpRequest, id: int, name: str, body: Correction) -> dict[str, Any]:
    """Correct or add a field. Sending the extracted value confirms it."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)
    try:
        field = corrections.correct(id, name, body.value, actor=caller.actor)
    except InvalidCorrection as refused:
        code = "gone" if refused.code == "purged" else "invalid_request"
        raise Problem(code, str(refused), {"reason": refused.code}) from refused
    if field is None:
        raise not_found("document", id)
    return _field(id, field.name)


@routes.delete("/documents/{id:id}/fields/{path:name}", response=responses({200: DocumentFieldOut}), auth=OPERATE)
def withdraw(request: HttpRequest, id: int, name: str) -> dict[str, Any]:
    """Withdraw a correction. The extracted value applies again."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)
    if not corrections.withdraw(id, name, actor=caller.actor):
        raise not_found("correction", name[:LONGEST_NAME])
    return _field(id, fields.clean_name(name))


def _field(id: int, name: str) -> dict[str, Any]:
    """Return the current values of a field. They are empty if a person had added the field and has withdrawn it."""
    rows = (row for row in fields.of_document(id) if row.name == name)
    return _values_of(next(rows, FieldRow(name)))


def _values_of(row: FieldRow) -> dict[str, Any]:
    correction = row.correction
    values = {"value": correction.value, "by": correction.by, "at": correction.at} if correction else None
    others = [SourceValueOut.of(other) for other in row.others]
    return DocumentFieldOut.of(row, kind=row.kind or None, source=row.source or None, others=others, correction=values)
