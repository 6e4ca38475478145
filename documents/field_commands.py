"""The subcommands of `manage.py document` for fields."""

from dataclasses import asdict
from typing import Any

from documents import corrections
from documents.corrections import InvalidCorrection
from documents.fields import FieldRow, of_document
from documents.models import Document, DocumentField
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    identifier,
    not_found,
    table,
)
from workspaces.commands import find_workspace

COLUMNS = (
    "id",
    "document_id",
    "document__workspace__name",
    "name",
    "value",
    "kind",
    "confidence",
    "page",
    "box",
    "source",
    "reason",
    "in_conflict",
)
SHOWN = ("name", "value", "machine_value", "kind", "confidence", "page", "source", "corrected_by")


def add_verbs(add: AddVerb) -> None:
    showing = add("fields", show, "Show the fields of a document, or list the fields that need review.")
    showing.add_argument("id", metavar="ID", type=identifier, nargs="?")
    showing.add_argument(
        "--to-look-at",
        action="store_true",
        help="list unsure fields of all documents that have not been corrected or confirmed",
    )
    showing.add_argument("--workspace", metavar="WORKSPACE", help="only this workspace, by name or id")
    add_limit(showing)
    correcting = add("correct", correct, "Correct or confirm a field of a document.")
    add_ids(correcting)
    correcting.add_argument("name", metavar="NAME")
    correcting.add_argument(
        "value",
        metavar="VALUE",
        nargs="?",
        help='the value; the extracted one confirms it, "" marks the field as absent',
    )
    correcting.add_argument(
        "--withdraw", action="store_true", help="remove the correction, so that the extracted value applies again"
    )
    add_actor(correcting)


def show(
    *, id: int | None, to_look_at: bool, workspace: str | None, limit: int, before: int | None, **_: Any
) -> Answer:
    if to_look_at == (id is not None):
        raise _either("an id or --to-look-at", "fields", has_both=to_look_at)
    if id is None:
        fields = DocumentField.objects.to_look_at().order_by("-id")
        fields = fields.filter(document__workspace=find_workspace(workspace)) if workspace else fields
        fields = fields.filter(pk__lt=before) if before else fields
        rows = [
            {name.replace("document__workspace__name", "workspace"): value for name, value in row.items()}
            for row in fields.values(*COLUMNS)[:limit]
        ]
        shown = ("id", "workspace", "document_id", "name", "value", "confidence", "page")
        return Answer({"fields": rows}, table(rows, *shown))
    if not Document.objects.filter(pk=id).exists():
        raise _no_document(id)
    rows = [_values(row) for row in of_document(id)]
    return Answer({"id": id, "fields": rows}, table(rows, *SHOWN))


def correct(*, id: int, name: str, value: str | None, withdraw: bool, actor: str | None, **_: Any) -> Answer:
    if withdraw == (value is not None):
        raise _either("a value or --withdraw", "correct", has_both=withdraw)
    if not Document.objects.filter(pk=id).exists():
        raise _no_document(id)
    if value is None:
        if not corrections.withdraw(id, name, actor=actor_of(actor)):
            message = f"The field {name!r} has no correction. List the fields with `manage.py document fields {id}`."
            raise Failure(message, Exit.REFUSED, "not_corrected")
        data = {"id": id, "result": "withdrawn", **_field(id, name)}
        return Answer(data, clean(f"Withdrew the correction of {name}."))
    try:
        correction = corrections.correct(id, name, value, actor=actor_of(actor))
    except InvalidCorrection as refused:
        raise Failure(str(refused), Exit.REFUSED, refused.code) from refused
    if correction is None:
        raise _no_document(id)
    result = "confirmed" if correction.is_confirmed else "corrected"
    return Answer({"id": id, "result": result, **_field(id, correction.name)}, clean(str(correction)))


def _field(id: int, name: str) -> dict[str, Any]:
    """Return the current field. All values are empty if the field had only a correction, which was withdrawn."""
    row = next((row for row in of_document(id) if row.name == name), FieldRow(name))
    return {"field": _values(row)}


def _values(row: FieldRow) -> dict[str, Any]:
    values = asdict(row)
    del values["correction"]
    correction = row.correction
    return values | {
        "value": row.value,
        "is_corrected": row.is_corrected,
        "agrees": row.agrees,
        "correction": correction.value if correction else None,
        "corrected_by": correction.by if correction else None,
        "corrected_at": correction.at if correction else None,
    }


def _either(what: str, verb: str, *, has_both: bool) -> Failure:
    message = f"Give either {what}, not both." if has_both else f"Give {what}."
    return Failure(f"{message} `manage.py document {verb} --help` shows the arguments.", Exit.USAGE, "usage")


def _no_document(id: int) -> Failure:
    return not_found("document", id, "`manage.py document list` shows them")
