from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from api.callers import INSTALLATION, Caller, caller_of
from api.cancels import Reason
from api.errors import Problem
from api.frame import Out, responses
from runs import queue

routes = Router(tags=["queue"])

PERMISSION = "runs.change_queue"


class DepthOut(Out):
    queued: int
    running: int


class OwnDepthOut(DepthOut):
    workspace_id: int


class QueueOut(Out):
    total: Annotated[DepthOut, Field(description="sum over all workspaces")]
    own: Annotated[list[OwnDepthOut], Field(description="your workspaces that have runs in the queue")]
    limit: Annotated[int | None, Field(description="ADE_QUEUE_SIZE; null: no limit")]
    free: Annotated[int | None, Field(description="free places; null without a limit")]
    slots: Annotated[int, Field(description="worker threads for runs, of the workers that are alive")]
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None


@routes.get("/queue", response=responses({200: QueueOut}))
def show_queue(request: HttpRequest) -> dict[str, Any]:
    """Show the size of the queue of runs, and whether it is paused."""
    return _state_for(caller_of(request))


@routes.post("/queue/pause", response=responses({200: QueueOut}, 409), auth=INSTALLATION)
def pause_queue(request: HttpRequest, body: Reason | None = None) -> dict[str, Any]:
    """Pause the queue. Running runs continue and new runs are accepted, but none starts."""
    caller = _operator(request)
    if not queue.pause(actor=caller.actor, reason=body.reason if body else ""):
        raise Problem("conflict", "The queue is already paused.", {"paused": True})
    return _state_for(caller)


@routes.post("/queue/resume", response=responses({200: QueueOut}, 409), auth=INSTALLATION)
def resume_queue(request: HttpRequest) -> dict[str, Any]:
    caller = _operator(request)
    if not queue.resume(actor=caller.actor):
        raise Problem("conflict", "The queue is not paused.", {"paused": False})
    return _state_for(caller)


def _operator(request: HttpRequest) -> Caller:
    caller = caller_of(request)
    caller.require_permission(PERMISSION)
    return caller


def _state_for(caller: Caller) -> dict[str, Any]:
    state = queue.state(caller.user)
    row = state.row
    return {
        "total": vars(state.total),
        "own": [{"workspace_id": id, **vars(depth)} for id, depth in state.own.items()],
        "limit": state.limit,
        "free": state.free,
        "slots": state.slots,
        "paused": bool(row and row.paused_at),
        "paused_at": row.paused_at if row else None,
        "paused_by": (row.paused_by or None) if row else None,
        "pause_reason": (row.pause_reason or None) if row else None,
    }
