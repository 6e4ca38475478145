from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import ConfigDict, Field, model_validator

from api.callers import OPERATE, Caller, caller_of
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from api.idempotency import create_once
from api.ids import Id
from api.moments import Moment
from api.pages import Listing, Page, after_of, page
from api.routes.artifacts import ArtifactOut, artifact_of
from builds.models import Build, Configuration
from documents.models import Document
from runs import lifecycle, listing
from runs.lifecycle import OtherWorkspace, Purged, QueueFull
from runs.models import Run, RunField
from workspaces.models import Workspace

at_root = Router(tags=["runs"])
routes = Router(tags=["runs"])

MOST_DOCUMENTS = 1000
# Most fields and most artifacts in the detail of a run.
MOST_TOLD = 1000

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Outcome = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
T = TypeVar("T")
_ADDRESSES = {"stream": "stream", "log": "log", "files": "artifacts"}


class RunAddressesOut(Out):
    stream: Annotated[str, Field(description="server-sent events until the run ends")]
    log: Annotated[str, Field(description="log of the run, as lines of text")]
    files: Annotated[str, Field(description="list of the files that the run produced")]


class RunOut(Out):
    id: int
    workspace_id: int
    configuration_id: int
    input_document_id: int
    build_id: int
    status: Status
    outcome: Annotated[Outcome, Field(description="same as the status, except for a run that timed out")]
    failure_type: str | None
    error_message: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    pruned_at: Annotated[datetime | None, Field(description="time when its log and its artifacts were deleted")]
    addresses: Annotated[RunAddressesOut, Field(description="paths on this server")]


class RunFieldOut(Out):
    position: int
    name: str
    value: Any
    confidence: float | None
    page: int | None
    box: list[float] | None
    step: str | None


class RunDetailOut(RunOut):
    fields: Annotated[list[RunFieldOut], Field(description=f"fields that the run reported; the first {MOST_TOLD:,}")]
    artifacts: Annotated[list[ArtifactOut], Field(description=f"files that the run produced; the first {MOST_TOLD:,}")]


class RunsOut(Out):
    items: list[RunOut]


def _one(named: str) -> dict[str, Any]:
    """Return the JSON schema for: this name has an ID, and the other has none."""
    names = ("document_id", "input_document_id")
    kinds = {name: {"type": "integer" if name == named else "null"} for name in names}
    return {"required": [named], "properties": kinds}


class Submission(In):
    model_config = ConfigDict(json_schema_extra={"oneOf": [_one("document_id"), _one("input_document_id")]})

    document_id: Id | None = None
    input_document_id: Annotated[Id | None, Field(description="another name for document_id")] = None

    @model_validator(mode="after")
    def _names_one(self) -> "Submission":
        if (self.document_id is None) == (self.input_document_id is None):
            raise ValueError("give either document_id or input_document_id, not both or neither")
        return self

    @property
    def document(self) -> int:
        return self.document_id or self.input_document_id or 0


class Submissions(In):
    configuration_id: Id
    document_ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_DOCUMENTS)]


class Runs(Listing):
    workspace_id: Id | None = None
    status: Status | None = None
    outcome: Outcome | None = None
    configuration_id: Id | None = None
    document_id: Id | None = None
    build_id: Id | None = None
    created_after: Annotated[Moment | None, Field(description="only runs from this time on")] = None
    created_before: Moment | None = None


@at_root.post(
    "/configurations/{id:id}/runs",
    response=responses({201: RunOut}, 409, 410, 422),
    auth=OPERATE,
    operation_id="submit_run_at_root",
)
@routes.post("/configurations/{id:id}/runs", response=responses({201: RunOut}, 409, 410, 422), auth=OPERATE)
def submit_run(request: HttpRequest, id: int, body: Submission) -> HttpResponseBase:
    """Queue a run of this configuration for a document of the same workspace."""
    caller = caller_of(request)
    configuration = _operated(caller, id)
    document = caller.find(Document.objects, body.document, "document")

    def make() -> dict[str, Any]:
        made = accepted(lambda: lifecycle.submit(configuration, document, actor=caller.actor), document.pk)
        return row_of(made)

    return create_once(request, 201, make)


@routes.post("/runs", response=responses({201: RunsOut}, 409, 410, 422), auth=OPERATE)
def submit_runs(request: HttpRequest, body: Submissions) -> HttpResponseBase:
    """Queue a run of one configuration for each of these documents: all of them or none."""
    caller = caller_of(request)
    configuration = _operated(caller, body.configuration_id)
    seen = Document.objects.for_user(caller.user).listed().in_bulk(body.document_ids)
    for id in body.document_ids:
        if id not in seen or seen[id].workspace_id != configuration.workspace_id:
            raise not_found("document", id)

    def make() -> dict[str, Any]:
        documents = [seen[id] for id in body.document_ids]
        ids = accepted(lambda: lifecycle.submit_many(configuration, documents, actor=caller.actor))
        return {"items": [row_of(run) for run in Run.objects.filter(pk__in=ids).order_by("pk")]}

    return create_once(request, 201, make)


@routes.get("/runs", response=responses({200: Page[RunOut]}))
def list_runs(request: HttpRequest, asked: Query[Runs]) -> dict[str, Any]:
    caller = caller_of(request)
    for id, objects, what in (
        (asked.workspace_id, Workspace.objects, "workspace"),
        (asked.configuration_id, Configuration.objects, "configuration"),
        (asked.build_id, Build.objects, "build"),
        (asked.document_id, Document.objects, "document"),
    ):
        if id is not None:
            caller.find(objects, id, what)
    piece = listing.Piece(asked.limit + 1, after_of(asked), is_newest_first=asked.order == "-id")
    return page(listing.runs(caller.user, _wanted(asked), piece), asked, row_of)


@routes.get("/runs/{id:id}", response=responses({200: RunDetailOut}))
def show_run(request: HttpRequest, id: int) -> dict[str, Any]:
    """Show a run with its fields and artifacts."""
    run = caller_of(request).find(Run.objects, id, "run")
    found, made = run.fields.order_by("position")[:MOST_TOLD], run.artifacts.order_by("pk")[:MOST_TOLD]
    return row_of(run) | {
        "fields": [_field_of(field) for field in found],
        "artifacts": [artifact_of(artifact) for artifact in made],
    }


def row_of(run: Run) -> dict[str, Any]:
    values = {name: getattr(run, name) or None for name in RunOut.model_fields if name != "addresses"}
    return values | {"addresses": {what: f"/api/v1/runs/{run.pk}/{path}" for what, path in _ADDRESSES.items()}}


def accepted(submit: Callable[[], T], document_id: int | None = None) -> T:
    """Call `submit` and return its result. Raises Problem if the run is refused."""
    try:
        return submit()
    except QueueFull as full:
        details = {"limit": full.limit, "live": full.live, "asked": full.asked}
        raise Problem("run_queue_full", str(full), details, headers={"Retry-After": "5"}) from full
    except OtherWorkspace as error:
        # The document is visible to the caller, but in another workspace than the configuration.
        raise not_found("document", document_id) from error
    except Purged as purged:
        raise Problem("gone", str(purged), {"document_id": purged.document.pk}) from purged


def _operated(caller: Caller, id: int) -> Configuration:
    configuration: Configuration = caller.find(Configuration.objects, id, "configuration")
    caller.require_operator(configuration.workspace)
    return configuration


def _wanted(asked: Runs) -> listing.Wanted:
    return listing.Wanted(
        workspace_id=asked.workspace_id,
        configuration_id=asked.configuration_id,
        build_id=asked.build_id,
        input_document_id=asked.document_id,
        outcomes=_outcomes(asked),
        created_after=asked.created_after,
        created_before=asked.created_before,
    )


def _outcomes(asked: Runs) -> tuple[str, ...] | None:
    if asked.status is None and asked.outcome is None:
        return None
    of_status = {"failed": ("failed", "timed_out"), None: Run.OUTCOMES}.get(asked.status, (asked.status,))
    return tuple(str(each) for each in of_status if asked.outcome in (None, each))


def _field_of(field: RunField) -> dict[str, Any]:
    values = {name: getattr(field, name) for name in RunFieldOut.model_fields}
    return values | {"step": field.step or None}
