"""How jobs stand, for their list and their pages: asked in two queries, of a hundred jobs as of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.jobs import Job, all_jobs, firing, standing, words
from runs.models import DueSlot, JobRun, ScheduledJob
from work import clock

# Whoever looks at the schedules does so each second.
SLACK = timedelta(minutes=1)


@dataclass(frozen=True)
class Line:
    """`row` is not stored when no worker has seen the job yet; `job` is None when the code does not declare it."""

    row: ScheduledJob
    job: Job | None
    running: JobRun | None
    # The latest of its slots that has ended.
    last: JobRun | None
    # Slots that are due.
    waiting: int

    @property
    def schedule(self) -> str:
        return words.of_schedule(self.row.cron, self.row.time_zone)

    @property
    def next_slot(self) -> datetime | None:
        return standing.next_slot(self.row) if self.job else None

    @property
    def overdue_since(self) -> datetime | None:
        """The first slot whose time has come, and of which nobody has decided."""
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
    """Of those that the code declares, in its order, then of those that it declared once."""
    jobs = {job.name: job for job in all_jobs()}
    rows = {row.name: row for row in _asked(ScheduledJob.objects.order_by("name"))}
    stored = [rows.get(name) or _unseen(job) for name, job in jobs.items()]
    return _lines([*stored, *(row for name, row in rows.items() if name not in jobs)], jobs)


def line_of(name: str) -> Line | None:
    """None when neither the code nor the database knows it."""
    jobs = {job.name: job for job in all_jobs() if job.name == name}
    row = _asked(ScheduledJob.objects.filter(name=name)).first()
    rows = [row] if row else [_unseen(job) for job in jobs.values()]
    return next(iter(_lines(rows, jobs)), None)


def _asked(rows: "QuerySet[ScheduledJob]") -> "QuerySet[Any]":
    runs = JobRun.objects.filter(job_name=OuterRef("name"))
    ended = runs.filter(status__in=sorted(JobRun.TERMINAL)).order_by("-scheduled_for")
    due = DueSlot.objects.filter(job_name=OuterRef("name")).order_by().values("job_name")
    return rows.annotate(
        running_id=Subquery(runs.filter(status=JobRun.CLAIMED).values("pk")[:1]),
        last_id=Subquery(ended.values("pk")[:1]),
        waiting=Coalesce(Subquery(due.annotate(number=Count("pk")).values("number")), 0),
    )


def _unseen(job: Job) -> ScheduledJob:
    row: Any = ScheduledJob(name=job.name, cron=job.cron, time_zone=job.time_zone)
    row.running_id = row.last_id = None
    row.waiting = 0
    return row  # type: ignore[no-any-return]  # as the rows that were asked for, with what was asked


def _lines(rows: Sequence[Any], jobs: dict[str, Job]) -> Sequence[Line]:
    ids = {id for row in rows for id in (row.running_id, row.last_id) if id}
    found = JobRun.objects.in_bulk(ids) if ids else {}
    return [
        Line(row, jobs.get(row.name), found.get(row.running_id), found.get(row.last_id), row.waiting) for row in rows
    ]
