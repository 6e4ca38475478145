"""Reports the current state of each job for lists: what it is doing, its next slot, and how its last slot ended."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schedules import cron, firing, formatting
from schedules.jobs import Job, UnknownJob, all_jobs
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock


@dataclass(frozen=True)
class JobStatus:
    name: str
    about: str
    schedule: str
    cron: str
    time_zone: str
    # paused, running, waiting, scheduled, new (no worker has seen it yet) or retired (no longer declared).
    state: str
    paused_by: str
    paused_at: datetime | None
    running: int | None
    running_since: datetime | None
    waiting: int
    # None if the job is retired. While the job is paused, this slot will be skipped.
    next_slot: datetime | None
    # The latest slot that has ended.
    last_outcome: str
    last_slot: datetime | None
    last_ended_at: datetime | None
    last_error: str
    last_success: datetime | None


def of_all() -> Sequence[JobStatus]:
    """Return the declared jobs in the order of their declaration, then the retired jobs."""
    rows = {row.name: row for row in ScheduledJob.objects.order_by("name")}
    declared = {job.name: job for job in all_jobs()}
    names = [*declared, *(name for name in rows if name not in declared)]
    running = {row.job_name: row for row in JobRun.objects.filter(status=JobRun.CLAIMED)}
    waiting = Counter(DueSlot.objects.filter(job_name__in=names).values_list("job_name", flat=True))
    return [_of(name, declared.get(name), rows.get(name), running.get(name), waiting[name]) for name in names]


def of(name: str) -> JobStatus:
    """Return the state of one job. Raises UnknownJob."""
    status = next((status for status in of_all() if status.name == name), None)
    if status is None:
        raise UnknownJob(name)
    return status


def next_slot(times: ScheduledJob | Job) -> datetime:
    """Return the job's next slot, even if the job has no row yet."""
    if isinstance(times, ScheduledJob) and times.pk:
        return firing.next_slot(times)
    return cron.next_slot(times.cron, times.time_zone, clock.now())


def _of(name: str, job: Job | None, row: ScheduledJob | None, running: JobRun | None, waiting: int) -> JobStatus:
    times: Any = row or job
    ended = JobRun.objects.filter(job_name=name, status__in=JobRun.TERMINAL).order_by("-scheduled_for")
    last = ended.first()
    success = ended.filter(status=JobRun.Status.SUCCESS).values_list("finished_at", flat=True).first()
    if row and row.paused_at:
        state = "paused"
    elif running:
        state = "running"
    elif waiting:
        state = "waiting"
    elif row is None:
        state = "new"
    else:
        state = "retired" if row.retired_at else "scheduled"
    return JobStatus(
        name=name,
        about=job.about if job else "",
        schedule=formatting.of_schedule(times.cron, times.time_zone),
        cron=times.cron,
        time_zone=times.time_zone,
        state=state,
        paused_by=row.paused_by if row else "",
        paused_at=row.paused_at if row else None,
        running=running.pk if running else None,
        running_since=running.started_at if running else None,
        waiting=waiting,
        next_slot=next_slot(times) if job else None,
        last_outcome=last.get_status_display() if last else "",
        last_slot=last.scheduled_for if last else None,
        last_ended_at=last.finished_at if last else None,
        last_error=last.error_message if last else "",
        last_success=success,
    )
