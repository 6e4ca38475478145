"""Loads the state of scheduled jobs for their list and their pages, with two queries however many jobs there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from schedules import firing, formatting, job_status
from schedules.jobs import Job, all_jobs
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock

# A slot that has waited longer than this is overdue, because schedules are checked every second.
SLACK = timedelta(minutes=1)


@dataclass(frozen=True)
class Line:
    """The state of a job. `row` is unsaved if no worker has stored the job yet; `job` is None if the code no longer
    declares it.
    """

    row: ScheduledJob
    job: Job | None
    running: JobRun | None
    # The latest slot that has ended.
    last: JobRun | None
    # Number of due slots.
    waiting: int

    @property
    def schedule(self) -> str:
        return formatting.of_schedule(self.row.cron, self.row.time_zone)

    @property
    def next_slot(self) -> datetime | None:
        return job_status.next_slot(self.row) if self.job else None

    @property
    def overdue_since(self) -> datetime | None:
        """Return the first slot whose time has passed but that was neither started nor skipped, or None."""
        if self.job is None or self.row.pk is None:
            return None
        first = firing.next_due(self.row)
        return first if first < clock.now() - SLACK else None

    @property
    def state(self) -> str:
        if self.job is None or self.row.retired_at:
            return "retired"
        if self.row.paused_at:
            return "paused"
        if self.running:
            return "running"
        if self.overdue_since:
            return "overdue"
        if self.waiting:
            return "waiting"
        return "scheduled" if self.row.pk else "new"


def all_lines() -> Sequence[Line]:
    """Return the declared jobs in their order, then the jobs that are no longer declared."""
    return _lines(ScheduledJob.objects.order_by("name"), {job.name: job for job in all_jobs()})


def line_of(name: str) -> Line | None:
    """Return the state of one job, or None if the job is neither declared nor stored."""
    jobs = {job.name: job for job in all_jobs() if job.name == name}
    return next(iter(_lines(ScheduledJob.objects.filter(name=name), jobs)), None)


def _lines(stored: "QuerySet[ScheduledJob]", jobs: dict[str, Job]) -> Sequence[Line]:
    runs = JobRun.objects.filter(job_name=OuterRef("name"))
    ended = runs.filter(status__in=sorted(JobRun.TERMINAL)).order_by("-scheduled_for")
    due = DueSlot.objects.filter(job_name=OuterRef("name")).order_by().values("job_name")
    annotated: Any = stored.annotate(
        running_id=Subquery(runs.filter(status=JobRun.CLAIMED).values("pk")[:1]),
        last_id=Subquery(ended.values("pk")[:1]),
        waiting=Coalesce(Subquery(due.annotate(number=Count("pk")).values("number")), 0),
    )
    rows = {row.name: row for row in annotated}
    ids = {id for row in rows.values() for id in (row.running_id, row.last_id) if id}
    job_runs = JobRun.objects.in_bulk(ids) if ids else {}
    lines = []
    for name in dict.fromkeys((*jobs, *rows)):
        job, row = jobs.get(name), rows.get(name)
        if row:
            last = job_runs.get(row.last_id)
            lines.append(Line(row, job, job_runs.get(row.running_id), last, row.waiting))
        elif job:
            unsaved = ScheduledJob(name=job.name, cron=job.cron, time_zone=job.time_zone)
            lines.append(Line(unsaved, job, None, None, 0))
    return lines
