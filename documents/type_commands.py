"""The subcommands of `manage.py document` for types and problems."""

from typing import Any

from documents import operations, type_recognition, types
from documents.models import Document, DocumentProblem
from documents.type_recognition import UnknownType
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    identifier,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome
from workspaces.commands import find_workspace

COLUMNS = ("id", "document_id", "document__workspace__name", "code", "field", "message", "found_at", "dismissed_at")
TYPE = ("type", "type_confidence", "type_reason", "type_chosen_by")


def add_verbs(add: AddVerb) -> None:
    listing = add("types", list_types, "List the document types of a workspace.")
    listing.add_argument("--workspace", metavar="WORKSPACE", required=True, help="name or id")
    choosing = add("type", choose_type, "Choose the type of a document, or let ADE decide again.")
    choosing.add_argument("id", metavar="ID", type=identifier)
    choosing.add_argument("type", metavar="TYPE", nargs="?", help="name of the type, as in `manage.py document types`")
    choosing.add_argument("--let-ade-decide", action="store_true", help="withdraw the choice of a person")
    add_actor(choosing)
    problems = add("problems", list_problems, "List open problems of all documents, or all problems of one.")
    problems.add_argument("id", metavar="ID", type=identifier, nargs="?", help="a document")
    problems.add_argument("--workspace", metavar="WORKSPACE", help="only this workspace, by name or id")
    add_limit(problems)
    dismissing = add("dismiss", dismiss, "Dismiss problems. They stay dismissed when the document is processed again.")
    add_ids(dismissing, many=True)
    add_actor(dismissing)


def list_types(*, workspace: str, **_: Any) -> Answer:
    known = types.of_workspace(find_workspace(workspace).pk)
    rows = [
        {
            "name": spec.name,
            "label": spec.label,
            "built_in": spec.is_built_in,
            "threshold": spec.threshold,
            "required": [each.name for each in spec.required],
            "fields": [each.name for each in spec.fields],
        }
        for spec in known.all()
    ]
    shown = [
        row | {"required": ", ".join(each.name for each in spec.required)}
        for row, spec in zip(rows, known.all(), strict=True)
    ]
    return Answer({"types": rows}, table(shown, "name", "label", "built_in", "threshold", "required"))


def choose_type(*, id: int, type: str | None, let_ade_decide: bool, actor: str | None, **_: Any) -> Answer:
    if let_ade_decide == (type is not None):
        message = "Give either a type or --let-ade-decide. `manage.py document type --help` shows the arguments."
        raise Failure(message, Exit.USAGE, "usage")
    try:
        is_changed = type_recognition.choose(id, type or "", actor=actor_of(actor))
    except UnknownType as refused:
        raise Failure(str(refused), Exit.REFUSED, "unknown_type") from refused
    if is_changed is None:
        raise not_found("document", id, "`manage.py document list` shows them")
    data = Document.objects.filter(pk=id).values(*TYPE).get()
    said = f"Document {id} has the type {data['type'] or 'unknown'}. {data['type_reason']}"
    return Answer({"id": id, "is_changed": is_changed, **data}, clean(said.strip()))


def list_problems(*, id: int | None, workspace: str | None, limit: int, before: int | None, **_: Any) -> Answer:
    problems = DocumentProblem.objects.order_by("-id")
    problems = problems.open() if id is None else problems.filter(document=id)
    problems = problems.filter(document__workspace=find_workspace(workspace)) if workspace else problems
    problems = problems.filter(pk__lt=before) if before else problems
    rows = [
        {name.replace("document__workspace__name", "workspace"): value for name, value in row.items()}
        for row in problems.values(*COLUMNS)[:limit]
    ]
    return Answer({"problems": rows}, table(rows, "id", "document_id", "code", "field", "message", "dismissed_at"))


def dismiss(*, ids: list[int], actor: str | None, **_: Any) -> Answer:
    problems = DocumentProblem.objects.in_bulk(ids)

    def one(problem: DocumentProblem) -> tuple[Outcome, Row]:
        return operations.DISMISS.apply_to(problem, actor=actor_of(actor)).outcome, {}

    return of_each("problem", ids, problems, one)
