"""Decides slots that have become due: hand them to the workers, merge them, drop them as late, or skip them in a pause.

Each slot is decided exactly once, by any number of workers: see `history.decide`.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.db import transaction

from schedules import cron, history, job_runs
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import Job
from schedules.models import DueSlot, ScheduledJob
from work import clock, failpoints, wakeups

log = structlog.get_logger(__name__)


def next_due(row: ScheduledJob) -> datetime:
    """Return the first undecided slot."""
    return cron.next_slot(row.cron, row.time_zone, row.decided_until)


def next_slot(row: ScheduledJob) -> datetime:
    """Return the first slot that is in the future and undecided."""
    return cron.next_slot(row.cron, row.time_zone, max(row.decided_until, clock.now()))


def fire(job: Job, *, actor: str) -> int:
    """Decide the due slots of this job. Return how many were handed to the workers."""
    now = clock.now()
    row = ScheduledJob.objects.get(name=job.name)
    due = cron.due_slots(row.cron, row.time_zone, row.decided_until, now)
    if not due:
        return 0
    # A job run that takes too long must not delay this slot.
    job_runs.skip_stale(job.name, job.stale_after, actor=actor)
    with failpoints.inside("slot.decided"), transaction.atomic():
        if not history.decide(row, due[-1]):
            return 0
        if row.paused_at:
            history.passed_over(row, due, actor=actor)
            return 0
        handed = _hand_over(job, row, due, now, actor)
        if handed:
            wakeups.ring(JOB_RUN_STATES.kind)
    return handed


def _hand_over(job: Job, row: ScheduledJob, due: Sequence[datetime], now: datetime, actor: str) -> int:
    late = [slot for slot in due if now - slot > job.misfire_grace]
    in_time = due[len(late) :]
    if late:
        _drop(job, row, late, now, actor)
    if not in_time:
        return 0
    if job.coalesce:
        in_time = _merge(row, in_time, actor)
    waiting = set(DueSlot.objects.filter(job_name=job.name).values_list("scheduled_for", flat=True))
    new = [slot for slot in in_time if slot not in waiting]
    DueSlot.objects.bulk_create(
        [
            DueSlot(job_name=job.name, scheduled_for=slot, due_at=now, expires_at=slot + job.misfire_grace)
            for slot in new
        ]
    )
    return len(new)


def _drop(job: Job, row: ScheduledJob, late: Sequence[datetime], now: datetime, actor: str) -> None:
    grace = job.misfire_grace.total_seconds()
    why = (
        f"no worker could run them within {grace:.0f} s; the scheduler ran {(now - late[0]).total_seconds():.0f} s late"
    )
    history.misfired(row, late, why, actor=actor)
    log.warning("job.misfired", job=job.name, first=late[0].isoformat(), last=late[-1].isoformat(), slots=len(late))


def _merge(row: ScheduledJob, slots: Sequence[datetime], actor: str) -> Sequence[datetime]:
    """Keep only the latest slot. Earlier slots that still wait are merged too, unless a person requested them."""
    *earlier, latest = slots
    waiting = DueSlot.objects.filter(job_name=row.name, asked_by="", scheduled_for__lt=latest)
    found = list(waiting.order_by("scheduled_for").values_list("scheduled_for", flat=True))
    waiting.delete()
    # Record them one by one: slots between them may have been decided differently.
    for slot in found:
        history.coalesced(row, [slot], latest, actor=actor)
    history.coalesced(row, earlier, latest, actor=actor)
    return [latest]
