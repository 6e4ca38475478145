from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import Field

from api.callers import OPERATE, caller_of
from api.cancels import Reason, result_of
from api.errors import Problem
from api.explanations import ExplanationOut
from api.frame import Out, empty_to_null, responses
from api.histories import SubjectEventOut, history_of
from api.idempotency import create_once
from api.ids import Id
from api.logs import LINES_OF_TEXT, Events, Lines, log_of
from api.pages import Listing, Page, page
from builds import lifecycle, why
from builds.lifecycle import BUILD_STATES
from builds.models import Build, Configuration
from runs.models import Run
from work.why import MOST_COUNTED
from workspaces.models import Workspace

routes = Router(tags=["builds"])

MOST_NAMED = 20

Status = Literal["queued", "building", "ready", "failed", "cancelled"]


class BuildOut(Out):
    id: int
    workspace_id: int
    configuration_id: int
    fingerprint: str
    status: Status
    failure_type: str | None
    error_message: str | None
    size_bytes: int | None
    losses: Annotated[int, Field(description="number of workers that were lost during the build")]
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None


class WaitingOut(Out):
    count: Annotated[int, Field(description=f"at most {MOST_COUNTED + 1:,}, which means more than {MOST_COUNTED:,}")]
    run_ids: Annotated[list[int], Field(description=f"the {MOST_NAMED} oldest")]


class BuildDetailOut(BuildOut):
    lock: Annotated[str | None, Field(description="exact package versions of its environment")]
    waiting: Annotated[WaitingOut, Field(description="queued runs that wait for this build")]


class BuildCancelOut(Out):
    result: Annotated[
        Literal["cancelled", "asked"], Field(description="cancelled at once, or its worker was asked to stop")
    ]
    build: BuildOut


class Builds(Listing):
    workspace_id: Id | None = None
    configuration_id: Id | None = None
    status: Status | None = None

    def lookups(self) -> dict[str, Any]:
        names = {"workspace_id": "configuration__workspace_id"}
        return {names.get(name, name): value for name, value in self.filters().items()}


@routes.get("/builds", response=responses({200: Page[BuildOut]}))
def list_builds(request: HttpRequest, listing: Query[Builds]) -> dict[str, Any]:
    caller = caller_of(request)
    if listing.workspace_id is not None:
        caller.find(Workspace, listing.workspace_id)
    if listing.configuration_id is not None:
        caller.find(Configuration, listing.configuration_id)
    return page(Build.objects.for_user(caller.user).listed().filter(**listing.lookups()), listing, row_of)


@routes.get("/builds/{id:id}", response=responses({200: BuildDetailOut}))
def show_build(request: HttpRequest, id: int) -> dict[str, Any]:
    """Show a build with its package versions and the runs that wait for it."""
    build = caller_of(request).find(Build, id)
    waiting = Run.objects.for_user(caller_of(request).user).filter(build=build, status=Run.Status.QUEUED, gate="build")
    ids = list(waiting.order_by("created_at", "id").values_list("pk", flat=True)[: MOST_COUNTED + 1])
    return row_of(build) | {"lock": build.lock or None, "waiting": {"count": len(ids), "run_ids": ids[:MOST_NAMED]}}


@routes.get("/builds/{id:id}/events", response=responses({200: Page[SubjectEventOut]}))
def list_build_events(request: HttpRequest, id: int, listing: Query[Events]) -> dict[str, Any]:
    return history_of(BUILD_STATES.kind, caller_of(request).find(Build, id).pk, listing)


@routes.get("/builds/{id:id}/log", response=responses({200: None}), openapi_extra=LINES_OF_TEXT)
def show_build_log(request: HttpRequest, id: int, lines: Query[Lines]) -> HttpResponseBase:
    """Show the output of a build, line by line."""
    return log_of(BUILD_STATES.kind, caller_of(request).find(Build, id).pk, lines)


@routes.get("/builds/{id:id}/why", response=responses({200: ExplanationOut}))
def explain_build(request: HttpRequest, id: int) -> dict[str, Any]:
    """Explain what a queued build waits for, what blocks it, and since when."""
    return why.explain(caller_of(request).find(Build, id), user=caller_of(request).user).to_json()


@routes.post("/builds/{id:id}/cancel", response=responses({200: BuildCancelOut}, 409), auth=OPERATE)
def cancel_build(request: HttpRequest, id: int, body: Reason | None = None) -> dict[str, Any]:
    """Cancel a build. A queued build is cancelled at once; a build in progress is asked to stop."""
    caller = caller_of(request)
    build = caller.find(Build, id)
    caller.require_operator(build.configuration.workspace)
    status = lifecycle.cancel(build, actor=caller.actor, reason=body.reason if body else "")
    return {
        "result": result_of(BUILD_STATES, id, build.status, status),
        "build": row_of(caller.find(Build, id)),
    }


@routes.post("/builds/{id:id}/again", response=responses({200: BuildOut}, 409, 422), auth=OPERATE)
def build_again(request: HttpRequest, id: int) -> HttpResponseBase:
    """Queue a failed or cancelled build again. It stays the same build."""
    caller = caller_of(request)
    build = caller.find(Build, id)
    caller.require_operator(build.configuration.workspace)

    def make() -> dict[str, Any]:
        if not lifecycle.again(id, actor=caller.actor):
            status = caller.find(Build, id).status
            message = f"Build {id} cannot be queued again: it is {status}. Only failed and cancelled builds can."
            raise Problem("conflict", message, {"id": id, "status": status})
        return row_of(caller.find(Build, id))

    return create_once(request, 200, make)


def row_of(build: Build) -> dict[str, Any]:
    return empty_to_null(BuildOut.of(build, workspace_id=build.configuration.workspace_id))
