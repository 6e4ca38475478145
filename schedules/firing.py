"""Decides what happens to due slots: they are handed to the workers, merged, dropped as late, or skipped in a pause.

Each slot is decided exactly once, however many workers try: see `history.decide`.
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
    """Return the first undecided slot in the future."""
    return cron.next_slot(row.cron, row.time_zone, max(row.decided_until, clock.now()))


def fire(job: Job, *, actor: str) -> int:
    """Decide the due slots of this job. Return how many were handed to the workers."""
    now = clock.now()
    row = ScheduledJob.objects.get(name=job.name)
    slots = cron.due_slots(row.cron, row.time_zone, row.decided_until, now)
    if not slots:
        return 0
    # A job run that takes too long must not delay this slot.
    job_runs.skip_stale(job.name, job.stale_after, actor=actor)
    with failpoints.inside("slot.decided"), transaction.atomic():
        if not history.decide(row, slots[-1]):
            return 0
        if row.paused_at:
            history.record_passed_over(row, slots, actor=actor)
            return 0
        number = _hand_over(job, row, slots, now, actor)
        if number:
            wakeups.ring(JOB_RUN_STATES.kind)
    return number


def _hand_over(job: Job, row: ScheduledJob, slots: Sequence[datetime], now: datetime, actor: str) -> int:
    late = [slot for slot in slots if now - slot > job.misfire_grace]
    if late:
        grace, delay = job.misfire_grace.total_seconds(), (now - late[0]).total_seconds()
        message = f"no worker could run them within {grace:.0f} s; the scheduler ran {delay:.0f} s late"
        history.record_misfired(row, late, message, actor=actor)
        log.warning("job.misfired", job=job.name, first=late[0].isoformat(), last=late[-1].isoformat(), slots=len(late))
    slots = slots[len(late) :]
    if not slots:
        return 0
    if job.coalesce:
        *earlier, latest = slots
        # Also merge earlier slots that still wait, unless a person requested them. Record them one by one, because
        # slots between them may have been decided differently.
        waiting = DueSlot.objects.filter(job_name=row.name, asked_by="", scheduled_for__lt=latest)
        merged = list(waiting.order_by("scheduled_for").values_list("scheduled_for", flat=True))
        waiting.delete()
        for slot in merged:
            history.record_coalesced(row, [slot], latest, actor=actor)
        history.record_coalesced(row, earlier, latest, actor=actor)
        slots = [latest]
    known = set(DueSlot.objects.filter(job_name=job.name).values_list("scheduled_for", flat=True))
    new = [slot for slot in slots if slot not in known]
    DueSlot.objects.bulk_create(
        [
            DueSlot(job_name=job.name, scheduled_for=slot, due_at=now, expires_at=slot + job.misfire_grace)
            for slot in new
        ]
    )
    return len(new)
