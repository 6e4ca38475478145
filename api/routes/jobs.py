"""Scheduled jobs of the installation."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import INSTALLATION, insider_of
from api.cancels import Reason
from api.errors import Problem, not_found
from api.explanations import ExplanationOut
from api.frame import Out, responses
from api.histories import History, SubjectEventOut, history_of
from api.pages import Page
from schedules import job_status, why
from schedules.history import SCHEDULED_JOB_STATES, introduce
from schedules.history import pause as pause_job
from schedules.history import resume as resume_job
from schedules.jobs import Job, UnknownJob, all_jobs, job_named
from schedules.models import ScheduledJob

routes = Router(tags=["jobs"])

# The same permission as in the admin.
CHANGE = "schedules.change_scheduledjob"


class JobOut(Out):
    name: str
    about: str
    schedule: str
    cron: str
    time_zone: str
    state: Literal["new", "scheduled", "waiting", "running", "paused", "retired"]
    paused_by: str
    paused_at: datetime | None
    running: Annotated[int | None, Field(description="ID of its job run")]
    running_since: datetime | None
    waiting: Annotated[int, Field(description="number of due slots")]
    next_slot: datetime | None
    last_outcome: str
    last_slot: datetime | None
    last_ended_at: datetime | None
    last_error: str
    last_success: datetime | None


class JobDetailOut(JobOut):
    # None if the code no longer declares the job.
    max_runtime_seconds: float | None
    misfire_grace_seconds: float | None
    coalesce: bool | None


class JobPause(Reason):
    pass


@routes.get("/jobs", response=responses({200: Page[JobOut]}))
def list_jobs(request: HttpRequest) -> dict[str, Any]:
    """List the jobs that the code declares or once declared, on a single page."""
    insider_of(request)
    return {"items": [asdict(each) for each in job_status.of_all()], "next": None}


@routes.get("/jobs/{name:name}", response=responses({200: JobDetailOut}))
def show(request: HttpRequest, name: str) -> dict[str, Any]:
    insider_of(request)
    return _detail(name)


@routes.get("/jobs/{name:name}/events", response=responses({200: Page[SubjectEventOut]}))
def list_events(request: HttpRequest, name: str, listing: Query[History]) -> dict[str, Any]:
    """List the history of a job."""
    insider_of(request)
    # A job that no worker has stored yet has no ID and no events.
    return history_of(SCHEDULED_JOB_STATES.kind, row_of(name).pk or 0, listing)


@routes.get("/jobs/{name:name}/why", response=responses({200: ExplanationOut}), summary="Explain job")
def show_why(request: HttpRequest, name: str) -> dict[str, Any]:
    """Explain why the slot of a job has not started, what blocks it, and since when."""
    insider_of(request)
    return why.explain(row_of(name)).to_json()


@routes.post("/jobs/{name:name}/pause", response=responses({200: JobDetailOut}, 409), auth=INSTALLATION)
def pause(request: HttpRequest, name: str, body: JobPause | None = None) -> dict[str, Any]:
    """Pause a job. Its slots are skipped until it is resumed."""
    caller = insider_of(request, CHANGE)
    row = introduce(find_job(name), actor=caller.actor)
    if not pause_job(row, actor=caller.actor, reason=body.reason if body else ""):
        raise Problem("conflict", f"Job {name} is already paused.", {"state": "paused"})
    return _detail(name)


@routes.post("/jobs/{name:name}/resume", response=responses({200: JobDetailOut}, 409), auth=INSTALLATION)
def resume(request: HttpRequest, name: str) -> dict[str, Any]:
    """Resume a job. It continues with its next slot."""
    caller = insider_of(request, CHANGE)
    row = introduce(find_job(name), actor=caller.actor)
    if not resume_job(row, actor=caller.actor):
        raise Problem("conflict", f"Job {name} is not paused.", {"state": "not paused"})
    return _detail(name)


def find_job(name: str) -> Job:
    try:
        return job_named(name)
    except UnknownJob as error:
        if ScheduledJob.objects.filter(name=name).exists():
            message = f"Job {name} is retired: the code no longer declares it."
            raise Problem("conflict", message, {"state": "retired"}) from error
        raise not_found("job", name) from error


def row_of(name: str) -> ScheduledJob:
    """Return the row of a job. If no worker has stored the job yet, the row is unsaved."""
    if row := ScheduledJob.objects.filter(name=name).first():
        return row
    job = find_job(name)
    return ScheduledJob(name=name, cron=job.cron, time_zone=job.time_zone)


def _detail(name: str) -> dict[str, Any]:
    row_of(name)
    job = next((job for job in all_jobs() if job.name == name), None)
    times = {
        "max_runtime_seconds": job.max_runtime.total_seconds() if job else None,
        "misfire_grace_seconds": job.misfire_grace.total_seconds() if job else None,
        "coalesce": job.coalesce if job else None,
    }
    return asdict(job_status.of(name)) | times
