from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import ConfigDict, Field, model_validator

from api.callers import OPERATE, Caller, caller_of
from api.errors import Problem, not_found
from api.frame import In, Out, empty_to_null, responses
from api.idempotency import create_once
from api.ids import Id
from api.moments import Moment
from api.pages import Listing, Page, after_of, page
from api.routes.artifacts import ArtifactOut
from builds.models import Build, Configuration
from documents.models import Document
from runs import lifecycle, listing
from runs.lifecycle import DocumentFailed, OtherWorkspace, Purged, QueueFull
from runs.models import Run
from workspaces.models import Workspace

at_root = Router(tags=["runs"])
routes = Router(tags=["runs"])

MOST_DOCUMENTS = 1000
# The detail of a run lists at most this many fields and this many artifacts.
MOST_LISTED = 1000

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Outcome = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
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
    waits_for_processing: Annotated[bool, Field(description="whether it starts only when its document is processed")]
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
    fields: Annotated[list[RunFieldOut], Field(description=f"fields that the run reported; the first {MOST_LISTED:,}")]
    artifacts: Annotated[
        list[ArtifactOut], Field(description=f"files that the run produced; the first {MOST_LISTED:,}")
    ]


class RunsOut(Out):
    items: list[RunOut]


def _only(name: str) -> dict[str, Any]:
    """Return a JSON schema that requires an ID under this name and none under the other name."""
    names = ("document_id", "input_document_id")
    types = {each: {"type": "integer" if each == name else "null"} for each in names}
    return {"required": [name], "properties": types}


class Waiting(In):
    wait_for_processing: Annotated[
        bool,
        Field(description="whether the run starts only when its document is processed; if false, it may lack text"),
    ] = True


class Submission(Waiting):
    model_config = ConfigDict(json_schema_extra={"oneOf": [_only("document_id"), _only("input_document_id")]})

    document_id: Id | None = None
    input_document_id: Annotated[Id | None, Field(description="another name for document_id")] = None

    @model_validator(mode="after")
    def _names_only(self) -> "Submission":
        if (self.document_id is None) == (self.input_document_id is None):
            raise ValueError("give either document_id or input_document_id, not both or neither")
        return self

    @property
    def document(self) -> int:
        return self.document_id or self.input_document_id or 0


class Submissions(Waiting):
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
    configuration = _find_as_operator(caller, id)
    document = caller.find(Document, body.document)

    def make() -> dict[str, Any]:
        with refusals(document.pk):
            waits = body.wait_for_processing
            run = lifecycle.submit(configuration, document, actor=caller.actor, wait_for_processing=waits)
            return row_of(run)

    return create_once(request, 201, make)


@routes.post("/runs", response=responses({201: RunsOut}, 409, 410, 422), auth=OPERATE)
def submit_runs(request: HttpRequest, body: Submissions) -> HttpResponseBase:
    """Queue a run of one configuration for each of these documents: all of them or none."""
    caller = caller_of(request)
    configuration = _find_as_operator(caller, body.configuration_id)
    visible = Document.objects.for_user(caller.user).listed().in_bulk(body.document_ids)
    for id in body.document_ids:
        if id not in visible or visible[id].workspace_id != configuration.workspace_id:
            raise not_found("document", id)

    def make() -> dict[str, Any]:
        documents = [visible[id] for id in body.document_ids]
        with refusals():
            waits = body.wait_for_processing
            ids = lifecycle.submit_many(configuration, documents, actor=caller.actor, wait_for_processing=waits)
        return {"items": [row_of(run) for run in Run.objects.filter(pk__in=ids).order_by("pk")]}

    return create_once(request, 201, make)


@routes.get("/runs", response=responses({200: Page[RunOut]}))
def list_runs(request: HttpRequest, query: Query[Runs]) -> dict[str, Any]:
    caller = caller_of(request)
    filters: list[tuple[int | None, type[Model]]] = [
        (query.workspace_id, Workspace),
        (query.configuration_id, Configuration),
        (query.build_id, Build),
        (query.document_id, Document),
    ]
    for id, model in filters:
        if id is not None:
            caller.find(model, id)
    outcomes = None
    if query.status or query.outcome:
        status: str | None = query.status
        of_status = (status,) if status else Run.OUTCOMES
        if status == Run.Status.FAILED:
            of_status = (status, "timed_out")
        outcomes = tuple(each for each in of_status if query.outcome in (None, each))
    wanted = listing.RunFilter(
        workspace_id=query.workspace_id,
        configuration_id=query.configuration_id,
        build_id=query.build_id,
        input_document_id=query.document_id,
        outcomes=outcomes,
        created_after=query.created_after,
        created_before=query.created_before,
    )
    piece = listing.PageRequest(query.limit + 1, after_of(query), is_newest_first=query.order == "-id")
    return page(listing.runs(caller.user, wanted, piece), query, row_of)


@routes.get("/runs/{id:id}", response=responses({200: RunDetailOut}))
def show_run(request: HttpRequest, id: int) -> dict[str, Any]:
    """Show a run with its fields and artifacts."""
    run = caller_of(request).find(Run, id)
    fields = run.fields.order_by("position")[:MOST_LISTED]
    artifacts = run.artifacts.order_by("pk")[:MOST_LISTED]
    return row_of(run) | {
        "fields": [RunFieldOut.of(field, step=field.step or None) for field in fields],
        "artifacts": [ArtifactOut.of(artifact) for artifact in artifacts],
    }


def row_of(run: Run) -> dict[str, Any]:
    addresses = {name: f"/api/v1/runs/{run.pk}/{path}" for name, path in _ADDRESSES.items()}
    return empty_to_null(RunOut.of(run, addresses=addresses))


@contextmanager
def refusals(document_id: int | None = None) -> Iterator[None]:
    """Turn the errors of a refused run into Problems."""
    try:
        yield
    except QueueFull as full:
        details = {"limit": full.limit, "live": full.live, "asked": full.asked}
        raise Problem("run_queue_full", str(full), details, headers={"Retry-After": "5"}) from full
    except OtherWorkspace as error:
        # The caller can see the document, but it belongs to another workspace than the configuration.
        raise not_found("document", document_id) from error
    except Purged as purged:
        raise Problem("gone", str(purged), {"document_id": purged.document.pk}) from purged
    except DocumentFailed as failed:
        raise Problem("conflict", str(failed), {"document_id": failed.document_id, "status": "failed"}) from failed


def _find_as_operator(caller: Caller, id: int) -> Configuration:
    configuration = caller.find(Configuration, id)
    caller.require_operator(configuration.workspace)
    return configuration
