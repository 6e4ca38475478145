"""Lets people request job runs: now, for one slot, or for a range of slots.

A request only makes slots due. A worker then claims them under the same constraints as any other slot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from schedules import cron, history
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import Job
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock, wakeups

# Most slots per request, because a person waits for the request, and workers run the slots one after another.
MOST_AT_ONCE = 1000
# How far to look back for the last slot before a moment that is not a slot.
LOOKED_BACK = timedelta(days=366)


class NotASlot(Exception):
    """The moment is not a past slot of the job. `nearest` has slots that can be requested instead."""

    def __init__(self, message: str, *nearest: datetime) -> None:
        super().__init__(message)
        self.nearest = nearest


class SlotTaken(Exception):
    code = "slot_already_claimed"

    def __init__(self, job: Job, slot: datetime, job_run: JobRun | None) -> None:
        has = f"already has job run {job_run.pk} ({job_run.get_status_display()})" if job_run else ""
        super().__init__(f"The slot {slot.isoformat()} of {job.name} {has or 'is already waiting for a worker'}.")
        self.job_run = job_run


@dataclass(frozen=True)
class Backfill:
    """The slots of a range, divided into those without a row and those with one."""

    free: Sequence[datetime]
    taken: Sequence[datetime]


def run_now(job: Job, *, actor: str, covers: datetime | None = None) -> DueSlot:
    """Request a run now, outside of the schedule. The slots of the schedule still run in their turn.

    `covers` is a slot that this run replaces; the row of that slot does not change. Raises NotASlot.
    """
    # Accept any slot that has a row: it may come from a request or from an earlier schedule of the job.
    if covers is not None and not JobRun.objects.filter(job_name=job.name, scheduled_for=covers).exists():
        _check_past_slot(job, covers)
    now = clock.now()
    # Slots of the schedule have no microseconds. This slot must have some, so that it never equals one of them.
    slot = now if now.microsecond else now + timedelta(microseconds=1)
    return _request(job, slot, actor, covers)


def run_slot(job: Job, slot: datetime, *, actor: str) -> DueSlot:
    """Request a run for a past slot of the schedule. Raises NotASlot and SlotTaken."""
    _check_past_slot(job, slot)
    return _request(job, slot, actor, None)


def preview_backfill(job: Job, first: datetime, last: datetime) -> Backfill:
    """Return the slots of the range without requesting them. Raises NotASlot if the range is too long, or not in the
    past.
    """
    if last > clock.now() or first > last:
        raise NotASlot(f"The range must lie in the past, not {first.isoformat()} to {last.isoformat()}.")
    slots = []
    for slot in cron.slots_between(job.cron, job.time_zone, first - timedelta(seconds=1), last):
        slots.append(slot)
        if len(slots) > MOST_AT_ONCE:
            raise NotASlot(f"The range has more than {MOST_AT_ONCE} slots. Choose a shorter one.")
    taken = {*_moments(JobRun.objects.filter(job_name=job.name), first, last)}
    taken |= {*_moments(DueSlot.objects.filter(job_name=job.name), first, last)}
    return Backfill([slot for slot in slots if slot not in taken], [slot for slot in slots if slot in taken])


def backfill(job: Job, first: datetime, last: datetime, *, actor: str) -> Backfill:
    """Request all free slots of the range, oldest first. Raises NotASlot."""
    with transaction.atomic():
        row = history.introduce(job, actor=actor)
        ScheduledJob.objects.select_for_update().get(pk=row.pk)
        slots = preview_backfill(job, first, last)
        now = clock.now()
        DueSlot.objects.bulk_create(
            [DueSlot(job_name=job.name, scheduled_for=slot, due_at=now, asked_by=actor) for slot in slots.free]
        )
        data = {"first": first.isoformat(), "last": last.isoformat(), "count": len(slots.free)}
        history.record_request(row, f"{len(slots.free)} slots of a range", data, actor=actor)
        wakeups.ring(JOB_RUN_STATES.kind)
    return slots


def _request(job: Job, slot: datetime, actor: str, covers: datetime | None) -> DueSlot:
    row = history.introduce(job, actor=actor)
    try:
        with transaction.atomic():
            # Lock the job's row first, like everything that decides, claims or requests its slots.
            ScheduledJob.objects.select_for_update().get(pk=row.pk)
            if job_run := JobRun.objects.filter(job_name=job.name, scheduled_for=slot).first():
                raise SlotTaken(job, slot, job_run)
            due = DueSlot.objects.create(job_name=job.name, scheduled_for=slot, asked_by=actor, covers=covers)
            message = "at once" if covers is None else f"replacing the slot of {covers.isoformat()}"
            history.record_request(row, message, {"slot": slot.isoformat()}, actor=actor)
            wakeups.ring(JOB_RUN_STATES.kind)
    except IntegrityError as error:
        raise SlotTaken(job, slot, None) from error
    return due


def _check_past_slot(job: Job, slot: datetime) -> None:
    following = cron.next_slot(job.cron, job.time_zone, slot - timedelta(seconds=1))
    if following != slot:
        before = cron.newest_first(job.cron, job.time_zone, slot - LOOKED_BACK, slot)
        nearest = [*islice(before, 1), following]
        last = f", the last slot before it is {nearest[0].isoformat()}" if len(nearest) > 1 else ""
        raise NotASlot(
            f"{slot.isoformat()} is not a slot of {job.name} ({job.cron} {job.time_zone})."
            f" The next slot after it is {following.isoformat()}{last}.",
            *nearest,
        )
    if slot > clock.now():
        raise NotASlot(f"The slot {slot.isoformat()} is not due yet. It will run when it is.")


def _moments(rows: "QuerySet[Any]", first: datetime, last: datetime) -> Sequence[datetime]:
    return list(rows.filter(scheduled_for__range=(first, last)).values_list("scheduled_for", flat=True))
