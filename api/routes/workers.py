"""Worker processes."""

from collections.abc import Set
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import INSTALLATION, Caller, insider_of
from api.cancels import Reason
from api.errors import Problem, not_found
from api.frame import Out, responses
from api.pages import Listing, Page, page
from api.subjects import Subject
from api.visibility import doing, visible
from work import clock, draining
from work.boots import WORKER_STATES
from work.models import Worker
from work.operations.outcomes import DONE

routes = Router(tags=["workers"])

_DRAIN = ("drain_requested_at", "drain_requested_by", "drain_reason")


class DoingOut(Out):
    kind: str
    id: Annotated[int | None, Field(description="null if it belongs to a workspace that you cannot see")]


class WorkerOut(Out):
    id: int
    name: str
    owner: Annotated[str, Field(description="name of the worker in leases and histories")]
    state: Literal["alive", "stopped", "silent"]
    host: str
    pid: int
    version: str
    lanes: Annotated[dict[str, int], Field(description="worker threads per kind of work")]
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None
    doing: list[DoingOut]
    drain_requested_at: Annotated[datetime | None, Field(description="since then it takes no new work, and will stop")]
    drain_requested_by: str | None
    drain_reason: str | None


class Workers(Listing):
    state: Annotated[
        Literal["alive", "stopped", "silent"] | None,
        Field(description="silent: no heartbeat for the length of a lease"),
    ] = None


@routes.get("/workers", response=responses({200: Page[WorkerOut]}))
def list_workers(request: HttpRequest, listing: Query[Workers]) -> dict[str, Any]:
    caller = insider_of(request)
    clock.keep_measured()
    rows = getattr(Worker.objects, listing.state)() if listing.state else Worker.objects.all()
    rows_page = page(rows, listing, lambda worker: {"row": worker})
    workers = [each["row"] for each in rows_page["items"]]
    known = visible(caller.user, [subject for worker in workers for subject in doing(worker)])
    return rows_page | {"items": [_row_of(worker, known) for worker in workers]}


@routes.get("/workers/{id:id}", response=responses({200: WorkerOut}))
def show(request: HttpRequest, id: int) -> dict[str, Any]:
    return _state_for(insider_of(request), _worker(id))


@routes.post("/workers/{id:id}/drain", response=responses({200: WorkerOut}, 409), auth=INSTALLATION)
def drain(request: HttpRequest, id: int, body: Reason | None = None) -> dict[str, Any]:
    """Drain a worker: it takes no new work, finishes within ADE_DRAIN_SECONDS, and stops until its next boot."""
    caller = insider_of(request, draining.PERMISSION)
    worker = _worker(id)
    if caller.record:
        caller.record.saw(WORKER_STATES.kind, id, None)
    outcome = draining.drain(worker, actor=caller.actor, reason=body.reason if body else "")
    if outcome not in DONE:
        details = {"id": id, "state": worker.state, "drain_requested_at": worker.drain_requested_at}
        raise Problem("conflict", draining.describe_outcome(worker, outcome), details)
    return _state_for(caller, worker)


def _worker(id: int) -> Worker:
    if worker := Worker.objects.filter(pk=id).first():
        return worker
    raise not_found("worker", id)


def _state_for(caller: Caller, worker: Worker) -> dict[str, Any]:
    clock.keep_measured()
    return _row_of(worker, visible(caller.user, doing(worker)))


def _row_of(worker: Worker, known: Set[Subject]) -> dict[str, Any]:
    subjects = [{"kind": kind, "id": id if (kind, id) in known else None} for kind, id in doing(worker)]
    drain = {name: getattr(worker, name) or None for name in _DRAIN}
    return WorkerOut.of(worker, doing=subjects, **drain)
