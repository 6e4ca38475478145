"""Requests to drain a worker. It then claims nothing more, finishes its work and stops, as after a first SIGTERM.

The request is stored in the worker's row, where its lease thread finds it even if the requesting process dies. It
applies to this boot of the worker only.
"""

from datetime import datetime

from django.conf import settings

from work import clock, lifecycle, wakeups
from work.boots import WORKER_STATES
from work.models import Worker, heard_from_since
from work.operations.outcomes import Outcome
from work.operations.previews import Operation

# A user who may pause the whole queue may also drain a worker.
PERMISSION = "runs.change_queue"
TOPIC = "drain"


def drain(worker: Worker, *, actor: str, reason: str = "") -> Outcome:
    """Request a drain and return the outcome. `worker` is refreshed from the database."""
    actor = actor[: lifecycle.ACTOR_CHARACTERS]
    is_accepted = lifecycle.record(
        WORKER_STATES,
        worker.pk,
        "WORKER_DRAIN_REQUESTED",
        actor=actor,
        message=reason,
        guards={
            "stopped_at__isnull": True,
            "heartbeat_at__gte": heard_from_since(),
            "drain_requested_at__isnull": True,
        },
        drain_requested_at=clock.now(),
        drain_requested_by=actor,
        drain_reason=reason,
    )
    if is_accepted:
        wakeups.ring(TOPIC)
    worker.refresh_from_db()
    if is_accepted:
        return Outcome.DRAINING
    return Outcome.WAS_DRAINING if worker.is_draining else Outcome.NOT_ALIVE


def describe_outcome(worker: Worker, outcome: Outcome) -> str:
    if outcome == Outcome.DRAINING:
        most = settings.ADE_DRAIN_SECONDS
        return f"{worker.owner} is draining: it claims nothing more, finishes its work within {most} s, and stops."
    if outcome == Outcome.WAS_DRAINING and worker.drain_requested_at:
        since = _at(worker.drain_requested_at)
        return f"{worker.owner} is already draining: {worker.drain_requested_by} requested it at {since}."
    if worker.stopped_at:
        return f"{worker.owner} cannot drain: it stopped at {_at(worker.stopped_at)}."
    return f"{worker.owner} cannot drain: it has sent no heartbeat since {_at(worker.heartbeat_at)}."


def _preview(worker: Worker) -> Outcome:
    if worker.state != "alive":
        return Outcome.NOT_ALIVE
    return Outcome.WAS_DRAINING if worker.is_draining else Outcome.DRAINING


DRAIN = Operation("drain", "Drain", drain, _preview, takes_reason=True)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
