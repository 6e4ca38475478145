"""Health checks for monitoring, and details for operators."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.db.models import Min
from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from api.callers import INSTALLATION, insider_of
from api.errors import Problem
from api.frame import Out, responses
from schedules.job_runs import JOB_RUN_STATES
from schedules.models import DueSlot
from work import health
from work.health import Queue

routes = Router(tags=["health"])

# Answer within this time, because monitoring systems often time out after a few seconds.
ANSWER_SECONDS = 2.0


class HealthOut(Out):
    status: Literal["ok"]


class QueueNumbersOut(Out):
    kind: str
    waiting: int
    at_work: int
    oldest_waiting_since: datetime | None


class HealthDetailsOut(Out):
    version: str
    workers_alive: int
    slots: Annotated[
        dict[str, int], Field(description="worker threads of the workers that are alive, per kind of work")
    ]
    queues: list[QueueNumbersOut]
    oldest_waiting_since: datetime | None


@routes.get("/health", response=responses({200: HealthOut}), auth=None)
def show(request: HttpRequest) -> dict[str, Any]:
    """Check that the database answers in time and that the disk has space. No token is needed."""
    # Check the disk first: if it is full, SQLite does not answer either, because it has no room for its WAL files.
    if health.disk_is_full():
        raise Problem("disk_full", "The disk is full.", {"status": "failing"}, headers={"Retry-After": "5"})
    if not health.database_answers(ANSWER_SECONDS):
        message = "The database did not answer in time."
        raise Problem("unavailable", message, {"status": "failing"}, headers={"Retry-After": "5"})
    return {"status": "ok"}


@routes.get("/health/details", response=responses({200: HealthDetailsOut}), auth=INSTALLATION)
def show_details(request: HttpRequest) -> dict[str, Any]:
    """Show the queues and the workers of all workspaces together."""
    insider_of(request)
    # A job run is created only when a worker claims a due slot, so the due slots are the queue of jobs.
    since = DueSlot.objects.aggregate(since=Min("due_at"))["since"]
    due_slots = Queue(JOB_RUN_STATES.kind, DueSlot.objects.count(), health.at_work(JOB_RUN_STATES), since)
    queues = [*health.queues(), due_slots]
    slots = health.concurrency()
    return {
        "version": settings.ADE_VERSION,
        "workers_alive": slots.workers,
        "slots": slots.of_kinds,
        "queues": [queue.__dict__ for queue in queues],
        "oldest_waiting_since": min((q.oldest_waiting_since for q in queues if q.oldest_waiting_since), default=None),
    }
