"""Uses django-q2 to store the schedules. Its cluster is never started, and only workers call its scheduler.

Nothing else of django-q2 is used: `firing.py` decides what is due, and workers claim a slot by inserting its row. The
scheduler of django-q2 uses the host's clock, merges missed slots into the oldest, stops at the first unreadable
schedule, and has no time zone per schedule. So it only serves as a wake-up: slots that are due by the database's clock
are decided even if django-q2 does not report them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils.module_loading import import_string
from django_q.brokers import Broker
from django_q.models import Schedule
from django_q.signing import SignedPackage

from schedules import firing, history, job_runs, lease
from schedules.jobs import all_jobs
from schedules.models import JobRun, ScheduledJob
from work import clock
from work.sql.contention import be_impatient

# Imported only when it is called, because the web process imports this module too, as part of a work type.
SCHEDULER = "django_q.scheduler.scheduler"
# The function that the rows of django-q2 name. It only identifies them as ADE's.
FUNCTION = "schedules.firing.fire"
# How often a worker compares the schedules with the code.
SYNC_SECONDS = 60.0
# If slots are decided further ahead than this, a clock was wrong. A smaller difference resolves itself soon.
AHEAD = timedelta(hours=1)

log = structlog.get_logger(__name__)


class Doorbell(Broker):  # type: ignore[misc]  # no type hints
    """A broker that queues nothing. It only records the jobs for which django-q2 would queue a task."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.names: set[str] = set()

    def enqueue(self, task: Any) -> str:
        call = SignedPackage.loads(task)
        if call["func"] == FUNCTION and len(call["args"]) == 1:
            self.names.add(call["args"][0])
        else:
            log.warning("schedules.unknown", function=str(call["func"])[:200])
        return str(call["id"])


class Scheduler:
    """Looks at the schedules for one worker, while that worker has the lease."""

    def __init__(self) -> None:
        self.synced_at: datetime | None = None

    def tick(self, owner: str) -> int:
        """Look at the schedules if this worker has the lease. Return how many slots were handed to the workers."""
        if not settings.ADE_SCHEDULES or not lease.take(owner):
            self.synced_at = None
            return 0
        if clock.jumped_within(settings.ADE_LEASE_SECONDS):
            # A clock was set. For a while it is unknown whether the old or the new time is right.
            return 0
        now = clock.now()
        if self.synced_at is None or (now - self.synced_at).total_seconds() >= SYNC_SECONDS:
            sync(actor=owner)
            self.synced_at = now
        skip_stale(owner)
        return fire_due(owner)


def sync(*, actor: str) -> None:
    """Make the stored schedules equal to the declared ones."""
    declared = {job.name: job for job in all_jobs()}
    for job in declared.values():
        with _apart(job.name):
            row = history.introduce(job, actor=actor)
            if not history.is_as_declared(row, job):
                # Decide the due slots of the old schedule first, so that the change does not lose them.
                firing.fire(job, actor=actor)
                history.declare(job, actor=actor)
                row = ScheduledJob.objects.get(name=job.name)
            if row.decided_until - clock.now() > AHEAD:
                history.go_back(row, actor=actor)
                row.refresh_from_db()
            _write_schedule(row)
    for row in ScheduledJob.objects.filter(retired_at__isnull=True).exclude(name__in=declared):
        history.retire(row, actor=actor)
    Schedule.objects.filter(func=FUNCTION).exclude(name__in=declared).delete()


@contextmanager
def _apart(name: str) -> Iterator[None]:
    """Log an error of one job, so that it does not stop the other jobs."""
    try:
        yield
    except Exception:
        log.exception("schedules.not_looked_at", job=name)
        # The error may have left the connection in any state.
        if not connection.in_atomic_block:
            connection.close()
            be_impatient()


def skip_stale(actor: str) -> int:
    """Give up job runs that took too long, even if their workers are alive."""
    running = JobRun.objects.filter(status=JobRun.CLAIMED, job_name__in=[job.name for job in all_jobs()])
    names = set(running.values_list("job_name", flat=True))
    return sum(job_runs.skip_stale(job.name, job.stale_after, actor=actor) for job in all_jobs() if job.name in names)


def fire_due(actor: str) -> int:
    """Decide the due slots of all jobs. Return how many were handed to the workers."""
    jobs = {job.name: job for job in all_jobs()}
    rows = list(ScheduledJob.objects.filter(name__in=jobs, retired_at__isnull=True).order_by("id"))
    due = []
    for row in rows:
        with _apart(row.name):
            if firing.next_due(row) <= clock.now():
                due.append(row)
    if not due:
        return 0
    _disable_others(rows)
    # Run django-q2's scheduler, and then set its schedules to the next slots.
    bell = Doorbell()
    # Call django-q2 outside of a transaction, because it begins by closing the connection.
    import_string(SCHEDULER)(broker=bell)
    be_impatient()
    for row in due:
        Schedule.objects.filter(name=row.name).update(next_run=firing.next_slot(row))
    if silent := sorted({row.name for row in due} - bell.names):
        # The host's clock may be slightly behind the database's.
        log.info("schedules.not_rung", jobs=silent)
    number = 0
    for row in due:
        with _apart(row.name):
            number += firing.fire(jobs[row.name], actor=actor)
    return number


def _disable_others(rows: list[ScheduledJob]) -> None:
    """Disable all schedules of django-q2 except the ones that are as ADE writes them.

    For any other schedule, django-q2 might call the schedule's function in this process (`sync`), or step through every
    minute since a year long ago.
    """
    ours: list[int] = []
    for row in rows:
        with _apart(row.name):
            # Ignore next_run: if a schedule rings too early, nothing is due.
            columns = {column: value for column, value in _columns(row).items() if column != "next_run"}
            schedules = Schedule.objects.filter(name=row.name, **columns).order_by("id")
            ours += schedules.values_list("pk", flat=True)[:1]
    Schedule.objects.exclude(repeats=0).exclude(pk__in=ours).update(repeats=0)


def _write_schedule(row: ScheduledJob) -> None:
    schedules = Schedule.objects.filter(name=row.name).order_by("id")
    stored = list(schedules)
    columns = _columns(row)
    if len(stored) == 1 and all(getattr(stored[0], column) == value for column, value in columns.items()):
        return
    with transaction.atomic():
        columns = _columns(ScheduledJob.objects.select_for_update().get(pk=row.pk))
        # Schedule names are not unique in django-q2. Keep the first row and delete the others.
        first, *others = [*schedules.all()] or [Schedule(name=row.name)]
        Schedule.objects.filter(pk__in=[other.pk for other in others]).delete()
        for column, value in columns.items():
            setattr(first, column, value)
        first.save()
        # A new row computes its own next_run, in UTC, so write the column afterwards.
        Schedule.objects.filter(pk=first.pk).update(next_run=columns["next_run"])


def _columns(row: ScheduledJob) -> dict[str, Any]:
    return {
        "func": FUNCTION,
        "args": repr((row.name,)),
        "kwargs": None,
        "hook": None,
        "cluster": None,
        "schedule_type": Schedule.CRON,
        "cron": row.cron,
        "repeats": -1,
        "intended_date_kwarg": None,
        "next_run": firing.next_due(row),
    }
