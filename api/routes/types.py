from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from api.callers import OPERATE, caller_of
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from api.ids import Id
from api.pages import Listing, Page, page
from api.routes.documents import DocumentOut
from documents import operations, type_recognition, types
from documents.models import Document, DocumentProblem
from documents.type_recognition import UnknownType
from work.operations.outcomes import Outcome
from workspaces.models import Workspace

routes = Router(tags=["types"])


class TypeFieldOut(Out):
    name: str
    kind: str
    required: bool
    threshold: Annotated[float, Field(description="values with a lower confidence need review")]


class DocumentTypeOut(Out):
    name: str
    label: str
    built_in: Annotated[bool, Field(description="false if the workspace defines the type")]
    words: Annotated[list[str], Field(description="a document that contains all of them is of this type")]
    fields: list[TypeFieldOut]


class DocumentTypesOut(Out):
    workspace_id: int
    items: list[DocumentTypeOut]


class TypeChoice(In):
    type: Annotated[str | None, Field(max_length=50, description="name of the type; null: ADE decides again")]


class ProblemOfDocumentOut(Out):
    id: int
    document_id: int
    code: str
    field: Annotated[str | None, Field(description="the field that it concerns, if it concerns a single one")]
    message: str
    found_at: datetime
    dismissed_at: datetime | None
    dismissed_by: str | None


class Problems(Listing):
    state: Annotated[Literal["open"] | None, Field(description="only problems that are not settled")] = None
    workspace_id: Id | None = None
    document_id: Id | None = None
    code: Annotated[str | None, Field(max_length=50)] = None


class OfWorkspace(Schema):
    model_config = ConfigDict(extra="forbid")

    workspace_id: Annotated[Id | None, Field(description="required if you see several workspaces")] = None


@routes.get("/document-types", response=responses({200: DocumentTypesOut}))
def list_types(request: HttpRequest, which: Query[OfWorkspace]) -> dict[str, Any]:
    """List the document types of a workspace with their fields: its own, then the built-in ones."""
    caller = caller_of(request)
    visible = Workspace.objects.for_user(caller.user)
    if which.workspace_id is not None:
        workspace = caller.find(Workspace, which.workspace_id)
    elif visible.count() == 1:
        workspace = visible.get()
    else:
        raise Problem("invalid_request", "Choose a workspace with the parameter workspace_id.")
    return {"workspace_id": workspace.pk, "items": [_type(spec) for spec in types.of_workspace(workspace.pk).all()]}


@routes.put("/documents/{id:id}/type", response=responses({200: DocumentOut}, 410), auth=OPERATE)
def choose_type(request: HttpRequest, id: int, body: TypeChoice) -> dict[str, Any]:
    """Choose the type of a document. It stays when the document is processed again, and similar documents follow it."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)
    if document.purged_at:
        raise Problem("gone", f"Document {id} was purged.", {"document_id": id})
    try:
        if type_recognition.choose(id, body.type or "", actor=caller.actor) is None:
            raise not_found("document", id)
    except UnknownType as refused:
        raise Problem("invalid_request", str(refused), {"type": body.type}) from refused
    return DocumentOut.of(Document.objects.listed().get(pk=id))


@routes.get("/problems", response=responses({200: Page[ProblemOfDocumentOut]}))
def list_problems(request: HttpRequest, listing: Query[Problems]) -> dict[str, Any]:
    """List what is wrong with the documents that you can see."""
    caller = caller_of(request)
    rows = DocumentProblem.objects.for_user(caller.user)
    if listing.workspace_id is not None:
        rows = rows.filter(document__workspace=caller.find(Workspace, listing.workspace_id))
    if listing.document_id is not None:
        rows = rows.filter(document=caller.find(Document, listing.document_id))
    rows = rows.filter(code=listing.code) if listing.code is not None else rows
    rows = rows.open() if listing.state == "open" else rows
    return page(rows, listing, _problem)


@routes.post("/problems/{id:id}/dismiss", response=responses({200: ProblemOfDocumentOut}, 409), auth=OPERATE)
def dismiss_problem(request: HttpRequest, id: int) -> dict[str, Any]:
    """Say that a problem is none. It stays dismissed when the document is processed again."""
    caller = caller_of(request)
    problem = caller.find(DocumentProblem, id)
    caller.require_operator(problem.document.workspace)
    outcome = operations.DISMISS.apply_to(problem, actor=caller.actor).outcome
    if outcome is not Outcome.DISMISSED:
        raise Problem("conflict", f"Problem {id} {outcome}.", {"problem_id": id})
    return _problem(DocumentProblem.objects.get(pk=id))


def _type(spec: types.TypeSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "label": spec.label,
        "built_in": spec.is_built_in,
        "words": list(spec.words),
        "fields": [
            {
                "name": each.name,
                "kind": each.kind,
                "required": each.is_required,
                "threshold": spec.threshold_of(each.name),
            }
            for each in spec.fields
        ],
    }


def _problem(row: DocumentProblem) -> dict[str, Any]:
    return ProblemOfDocumentOut.of(row, field=row.field or None, dismissed_by=row.dismissed_by or None)
