from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import OPERATE, Caller, caller_of
from api.errors import Problem
from api.frame import In, Out, responses
from api.ids import Id
from api.pages import Listing, Page, page
from documents import lesson_files, operations
from documents.lesson_files import InvalidFile
from documents.lesson_previews import preview
from documents.models import Sender, SenderIdentity, SenderLesson
from work.operations.outcomes import DONE
from work.operations.previews import Operation
from workspaces.models import Workspace

routes = Router(tags=["senders"])


class SenderOut(Out):
    id: int
    workspace_id: int
    name: str
    created_at: datetime
    switched_off_at: datetime | None
    switched_off_by: str | None
    applied_at: Annotated[datetime | None, Field(description="when its lessons were last applied to past documents")]
    applied_by: str | None


class IdentityOut(Out):
    kind: str
    value: str


class LessonOut(Out):
    id: int
    sender_id: int
    field: str
    printed: Annotated[bool, Field(description="false: the document does not print the value, so nothing was learned")]
    learned_from_id: Annotated[int | None, Field(description="document; null if the lesson was imported")]
    learned_at: datetime
    right: Annotated[int, Field(description="documents on which a person confirmed it")]
    wrong: Annotated[int, Field(description="documents on which a person contradicted it")]
    switched_off_at: datetime | None
    switched_off_by: str | None


class SenderDetailOut(SenderOut):
    identities: list[IdentityOut]
    lessons: list[LessonOut]


class ChangeOut(Out):
    document_id: int
    field: str
    before: str | None
    after: str | None
    verdict: Annotated[
        Literal["improved", "changed", "worse"], Field(description="worse: no longer what a person confirmed")
    ]


class SenderPreviewOut(Out):
    sender_id: int
    documents: Annotated[int, Field(description="number of documents that were examined, the latest ones")]
    is_cut: Annotated[bool, Field(description="the sender has more documents")]
    counts: dict[str, int]
    changes: list[ChangeOut]


class SenderFile(In):
    """What `GET /senders/{id}/export` returns."""

    version: int
    name: str
    identities: list[dict[str, Any]]
    lessons: list[dict[str, Any]]


class SenderFileOut(Out):
    version: int
    name: str
    identities: list[IdentityOut]
    lessons: list[dict[str, Any]]


class SenderImportedOut(Out):
    id: int
    name: str
    new_lessons: int


class Senders(Listing):
    workspace_id: Id | None = None


@routes.get("/senders", response=responses({200: Page[SenderOut]}))
def list_senders(request: HttpRequest, listing: Query[Senders]) -> dict[str, Any]:
    """List the senders of documents that you can see."""
    caller = caller_of(request)
    rows = Sender.objects.for_user(caller.user)
    if listing.workspace_id is not None:
        rows = rows.filter(workspace=caller.find(Workspace, listing.workspace_id))
    return page(rows, listing, _sender)


@routes.get("/senders/{id:id}", response=responses({200: SenderDetailOut}))
def get_sender(request: HttpRequest, id: int) -> dict[str, Any]:
    """Get a sender with what names it, and what was learned about it."""
    sender = caller_of(request).find(Sender, id)
    lessons = SenderLesson.objects.filter(sender=id).counted().order_by("field", "id")
    return _sender(sender) | {
        "identities": list(SenderIdentity.objects.filter(sender=id).order_by("kind", "value").values("kind", "value")),
        "lessons": [_lesson(lesson) for lesson in lessons],
    }


@routes.get("/senders/{id:id}/preview", response=responses({200: SenderPreviewOut}))
def preview_sender(request: HttpRequest, id: int) -> dict[str, Any]:
    """Show what the lessons of a sender would change on its latest documents. Nothing is changed."""
    seen = preview(caller_of(request).find(Sender, id))
    return {
        "sender_id": id,
        "documents": seen.documents,
        "is_cut": seen.is_cut,
        "counts": seen.counts,
        "changes": [vars(change) for change in seen.changes],
    }


@routes.post("/senders/{id:id}/apply", response=responses({200: SenderOut}, 409), auth=OPERATE)
def apply_sender(request: HttpRequest, id: int) -> dict[str, Any]:
    """Use the lessons of a sender for the documents that are there already, some at a time."""
    return _operate_sender(caller_of(request), id, operations.SENDER_APPLY)


@routes.post("/senders/{id:id}/off", response=responses({200: SenderOut}, 409), auth=OPERATE)
def switch_sender_off(request: HttpRequest, id: int) -> dict[str, Any]:
    """Stop learning about a sender and using its lessons. Their values are removed from all documents."""
    return _operate_sender(caller_of(request), id, operations.SENDER_OFF)


@routes.post("/senders/{id:id}/on", response=responses({200: SenderOut}, 409), auth=OPERATE)
def switch_sender_on(request: HttpRequest, id: int) -> dict[str, Any]:
    """Use the lessons of a sender again, for new documents."""
    return _operate_sender(caller_of(request), id, operations.SENDER_ON)


@routes.post("/senders/{id:id}/forget", response=responses({200: SenderOut}, 409), auth=OPERATE)
def forget_sender(request: HttpRequest, id: int) -> dict[str, Any]:
    """Delete a sender with all that is known about it, and the values that its lessons gave. Returns it as it was."""
    return _operate_sender(caller_of(request), id, operations.SENDER_FORGET)


@routes.get("/senders/{id:id}/export", response=responses({200: SenderFileOut}))
def export_sender(request: HttpRequest, id: int) -> dict[str, Any]:
    """Get what is known about a sender, to import it elsewhere."""
    return lesson_files.export(caller_of(request).find(Sender, id))


@routes.post("/workspaces/{id:id}/senders/import", response=responses({200: SenderImportedOut}), auth=OPERATE)
def import_sender(request: HttpRequest, id: int, body: SenderFile) -> dict[str, Any]:
    """Add what was exported to the sender with its identities, or to a new one. Lessons that are there stay."""
    caller = caller_of(request)
    workspace = caller.find(Workspace, id)
    caller.require_operator(workspace)
    try:
        sender, number = lesson_files.take_in(workspace.pk, body.model_dump(), actor=caller.actor)
    except InvalidFile as refused:
        raise Problem("invalid_request", str(refused)) from refused
    return {"id": sender.pk, "name": sender.name, "new_lessons": number}


@routes.post("/lessons/{id:id}/off", response=responses({200: LessonOut}, 409), auth=OPERATE)
def switch_lesson_off(request: HttpRequest, id: int) -> dict[str, Any]:
    """Stop using a lesson. Its values are removed from all documents."""
    return _operate_lesson(caller_of(request), id, operations.LESSON_OFF)


@routes.post("/lessons/{id:id}/on", response=responses({200: LessonOut}, 409), auth=OPERATE)
def switch_lesson_on(request: HttpRequest, id: int) -> dict[str, Any]:
    """Use a lesson again, for new documents."""
    return _operate_lesson(caller_of(request), id, operations.LESSON_ON)


def _operate_sender(caller: Caller, id: int, operation: Operation) -> dict[str, Any]:
    _operate(caller, caller.find(Sender, id), "sender", operation)
    return _sender(Sender.objects.get(pk=id))


def _operate_lesson(caller: Caller, id: int, operation: Operation) -> dict[str, Any]:
    _operate(caller, caller.find(SenderLesson, id), "lesson", operation)
    return _lesson(SenderLesson.objects.counted().get(pk=id))


def _operate(caller: Caller, row: Any, kind: str, operation: Operation) -> None:
    caller.require_operator(row.workspace if isinstance(row, Sender) else row.sender.workspace)
    outcome = operation.apply_to(row, actor=caller.actor).outcome
    if outcome not in DONE:
        raise Problem("conflict", f"{kind.capitalize()} {row.pk} {outcome}.", {f"{kind}_id": row.pk})


def _sender(row: Sender) -> dict[str, Any]:
    return SenderOut.of(row, switched_off_by=row.switched_off_by or None, applied_by=row.applied_by or None)


def _lesson(row: SenderLesson) -> dict[str, Any]:
    return LessonOut.of(row, printed=bool(row.method), switched_off_by=row.switched_off_by or None)
