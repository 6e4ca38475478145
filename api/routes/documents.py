from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from django.db.models.functions import Length, Substr
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import File, Form, Query, Router, Schema, UploadedFile
from pydantic import BeforeValidator, ConfigDict, Field

from api import files, uploads
from api.callers import OPERATE, Caller, caller_of
from api.errors import Problem
from api.frame import Out, empty_to_null, responses
from api.idempotency import HEADER, Keep, commit_once, create_once
from api.ids import Id
from api.moments import Moment
from api.outages import is_full_disk
from api.pages import Listing, Page, page
from documents import downloads, intake, reprocessing, retention, views
from documents.intake import DuplicateFile, Refused, StorageFailed
from documents.models import Document
from work import clock
from work.operations.outcomes import Outcome
from workspaces.models import Membership, Workspace

at_root = Router(tags=["documents"])
routes = Router(tags=["documents"])

Status = Literal["processing", "processed", "failed"]
_BYTES: dict[str, Any] = {"application/octet-stream": {"schema": {}}}
BYTES: dict[str, Any] = {
    "responses": {
        200: {"description": "The whole file.", "content": _BYTES},
        206: {"description": "The requested part.", "content": _BYTES},
        302: {"description": "A link to the storage, valid for some minutes, if the storage sends files itself."},
        304: {"description": "Not changed since the version that the caller has."},
    }
}
TAGGED: dict[str, Any] = {"responses": {304: {"description": "Not changed since the version that the caller has."}}}
# Characters of text per response.
CHARACTERS, MOST_CHARACTERS = 100_000, 1_000_000
# No text is longer, and PostgreSQL refuses much higher positions.
LAST_CHARACTER = 1 << 30


def parse_flag(value: Any) -> bool:
    flags = {"true": True, "false": False}
    if isinstance(value, bool):
        return value
    if value not in flags:
        raise ValueError("must be true or false")
    return flags[value]


# Forms accept only `true` and `false`; Pydantic alone would accept many other words.
Flag = Annotated[bool, BeforeValidator(parse_flag)]


class DocumentOut(Out):
    id: int
    workspace_id: int
    name: str
    status: Status
    content_type: str
    size_bytes: int
    sha256: str
    pages: int | None
    type: Annotated[str | None, Field(description="such as invoice, receipt or letter; null if it is not known")]
    type_confidence: float | None
    type_reason: str | None
    type_chosen_by: Annotated[str | None, Field(description="the person who chose the type")]
    to_review: Annotated[bool, Field(description="a field needs review, or there is an open problem")]
    sender_id: Annotated[int | None, Field(description="who sent it, if something on it says so")]
    created_at: datetime
    purged_at: datetime | None

    @classmethod
    def of(cls, row: Any, **values: Any) -> dict[str, Any]:
        return empty_to_null(super().of(row, **values))


class Upload(Schema):
    model_config = ConfigDict(extra="forbid")

    workspace: Annotated[Id | None, Field(description="required if you are an operator of several workspaces")] = None
    again: Annotated[Flag, Field(description="upload even if an identical file exists")] = False


class Documents(Listing):
    status: Status | None = None
    workspace_id: Id | None = None
    type: Annotated[str | None, Field(max_length=50)] = None
    to_review: bool | None = None
    content_type: Annotated[str | None, Field(max_length=100)] = None
    sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    created_after: Annotated[Moment | None, Field(description="only documents from this time on")] = None
    created_before: Moment | None = None

    def lookups(self) -> dict[str, Any]:
        names = {"created_after": "created_at__gte", "created_before": "created_at__lt"}
        return {names.get(name, name): value for name, value in self.filters().items()}


class DocumentTextOut(Out):
    document_id: int
    status: Status
    characters: int
    offset: int
    text: str
    next_offset: int | None


class Part(Schema):
    offset: Annotated[int, Field(ge=0, le=LAST_CHARACTER, description="number of characters to skip")] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_CHARACTERS, description="characters per response")] = CHARACTERS


class DocumentLinkOut(Out):
    url: str
    expires_at: datetime


@at_root.post(
    "/documents", response=responses({200: DocumentOut}, 409, 422), auth=OPERATE, operation_id="upload_at_root"
)
@routes.post("/documents", response=responses({200: DocumentOut}, 409, 422), auth=OPERATE)
def upload(request: HttpRequest, form: Form[Upload], file: File[UploadedFile]) -> HttpResponseBase:
    """Upload one file as a document. It is then processed."""
    uploads.check(request, *Upload.model_fields)
    caller = caller_of(request)
    workspace = choose_workspace(caller, form.workspace)

    def attempt(keep: Keep) -> dict[str, Any]:
        def also(document: Document) -> None:
            keep(DocumentOut.of(document))

        name, declared = file.name or "", file.content_type or ""
        try:
            document = intake.receive(workspace, file, name, declared, caller.actor, again=form.again, also=also)
        except Refused as refused:
            raise _problem_of(refused) from refused
        return DocumentOut.of(document)

    sha256 = uploads.sha256_of(file, workspace.pk, form.again) if HEADER in request.headers else None
    return commit_once(request, 200, attempt, sha256)


@routes.get("/documents", response=responses({200: Page[DocumentOut]}))
def list_documents(request: HttpRequest, listing: Query[Documents]) -> dict[str, Any]:
    caller = caller_of(request)
    if listing.workspace_id is not None:
        caller.find(Workspace, listing.workspace_id)
    rows = Document.objects.for_user(caller.user).filter(**listing.lookups()).defer("text", "embedding")
    return page(rows, listing, DocumentOut.of)


@routes.get("/documents/{id:id}", response=responses({200: DocumentOut}, 412), openapi_extra=TAGGED)
def show_document(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show the metadata of a document. With If-None-Match, an unchanged document answers 304."""
    return files.send_json(request, DocumentOut.of(caller_of(request).find(Document, id)))


@routes.get("/documents/{id:id}/text", response=responses({200: DocumentTextOut}, 410))
def show_text(request: HttpRequest, id: int, part: Query[Part]) -> dict[str, Any]:
    """Show the extracted text of a document in parts of up to `limit` characters."""
    document = _find_with_content(request, id)
    text, characters = (
        # Cut the text in the database, so that the whole text is not loaded for each part.
        Document.objects.filter(pk=id)
        .annotate(part=Substr("text", part.offset + 1, part.limit), characters=Length("text"))
        .values_list("part", "characters")
        .get()
    )
    end = part.offset + len(text)
    return {
        "document_id": id,
        "status": document.status,
        "characters": characters,
        "offset": part.offset,
        "text": text,
        "next_offset": end if text and end < characters else None,
    }


@routes.get("/documents/{id:id}/link", response=responses({200: DocumentLinkOut}, 410), summary="Create document link")
def link_document(request: HttpRequest, id: int) -> dict[str, Any]:
    """Create a link for downloading the file without a token. It is valid for some minutes."""
    link = views.link(_find_with_file(request, id), caller_of(request).person)
    return {
        "url": request.build_absolute_uri(link),
        "expires_at": clock.now() + timedelta(seconds=downloads.LINK_SECONDS),
    }


@routes.get("/documents/{id:id}/content", response=responses({200: None}, 410, 412, 416), openapi_extra=BYTES)
def download_document(request: HttpRequest, id: int) -> HttpResponseBase:
    """Download the original file or a part of it (Range); 302 to the storage if it sends files itself."""
    document = _find_with_file(request, id)
    stored = files.StoredFile(
        document.file.name or "",
        document.name,
        document.content_type,
        size_bytes=document.size_bytes,
        sha256=document.sha256,
    )
    return files.send(request, stored)


@routes.post("/documents/{id:id}/reprocess", response=responses({200: DocumentOut}, 409, 410, 422), auth=OPERATE)
def reprocess(request: HttpRequest, id: int) -> HttpResponseBase:
    """Process a document again and replace its text, fields and chunks."""
    caller = caller_of(request)
    document = caller.find(Document, id)
    caller.require_operator(document.workspace)

    def make() -> dict[str, Any]:
        outcome = reprocessing.reprocess(document, actor=caller.actor, in_bulk=False)
        if outcome is Outcome.PURGED:
            raise _gone(Document.objects.listed().get(pk=id))
        if outcome is not Outcome.MADE:
            message = f"Document {id} cannot be processed again: it {outcome}."
            raise Problem("conflict", message, {"document_id": id, "status": Document.Status.PROCESSING})
        return DocumentOut.of(Document.objects.listed().get(pk=id))

    return create_once(request, 200, make)


def _find_with_content(request: HttpRequest, id: int) -> Document:
    document = caller_of(request).find(Document, id)
    if document.purged_at:
        raise _gone(document)
    return document


def _find_with_file(request: HttpRequest, id: int) -> Document:
    document = _find_with_content(request, id)
    if not document.file:
        raise Problem("not_found", f"Document {id} has no file.", {"document with a file": id})
    return document


def _gone(document: Document) -> Problem:
    message = f"Document {document.pk} was {retention.purged_on(document)}."
    return Problem("gone", message, {"document_id": document.pk})


def choose_workspace(caller: Caller, id: int | None) -> Workspace:
    if id is not None:
        workspace = caller.find(Workspace, id)
        caller.require_operator(workspace)
        return workspace
    workspaces = list(Workspace.objects.operated_by(caller.user)[:2])
    if not workspaces:
        message = f"{caller.actor} is not an operator of any workspace. Ask an administrator for access."
        raise Problem("forbidden", message, {"role": Membership.Role.OPERATOR})
    if len(workspaces) > 1:
        raise Problem(
            "invalid_request", "You are an operator of several workspaces. Choose one with the parameter workspace."
        )
    return workspaces[0]


# The API code for some intake codes. All others mean that the content type is not supported.
_CODES = {"too_large": "too_large", "empty": "invalid_request", "already_there": "conflict"}


def _problem_of(refused: Refused) -> Problem:
    if refused.__cause__ is not None and is_full_disk(refused.__cause__):
        message = "The disk is full. Free some space on the server, then upload the file again."
        return Problem("disk_full", message, {"reason": refused.code}, headers={"Retry-After": "30"})
    if isinstance(refused, StorageFailed):
        return Problem("unavailable", str(refused), {"reason": refused.code}, headers={"Retry-After": "30"})
    details: dict[str, Any] = {"reason": refused.code}
    if isinstance(refused, DuplicateFile):
        details["document_id"] = refused.document.pk
    return Problem(_CODES.get(refused.code, "unsupported_media_type"), str(refused), details)
