"""Stores the state of declared jobs: their schedules, their pauses, and the decisions about their slots."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from schedules import cron
from schedules.jobs import Job
from schedules.models import ScheduledJob
from work import clock, lifecycle
from work.state_machine import StateMachine

SCHEDULED_JOB_STATES = StateMachine(
    kind="scheduled_job",
    model=ScheduledJob,
    initial="",
    created="JOB_DECLARED",
    table={},
    events={
        "JOB_DECLARED": (
            "A worker found the job in the code for the first time; the data have `cron`, `time_zone` and `since`,"
            " the moment after which slots follow this schedule."
        ),
        "JOB_REDECLARED": "Its schedule changed in the code, or the job is back; the same data.",
        "JOB_SET_BACK": "Its slots had been decided far ahead, because a clock was wrong.",
        "JOB_RETIRED": "The code no longer declares it; the data have `since`.",
        "JOB_PAUSED": "A person paused it: its slots are skipped.",
        "JOB_RESUMED": "A person resumed it.",
        "SLOTS_ASKED_FOR": "A person triggered one slot, or a range of slots.",
        "SLOTS_COALESCED": (
            "Slots were merged into a later one; the data have `first`, `last` and `count`, and the slot `into` which"
            " they were merged."
        ),
        "SLOTS_MISFIRED": "Slots could not start in time and were dropped; the data have `first`, `last` and `count`.",
        "SLOTS_PASSED_OVER": "Slots fell into a pause; the same data.",
        "SLOTS_TAKEN": "The slots had already been claimed; the same data.",
    },
)

# Kinds of events about slots that were decided without running. The data of such an event have the first and last slot.
COALESCED = "SLOTS_COALESCED"
MISFIRED = "SLOTS_MISFIRED"
PASSED_OVER = "SLOTS_PASSED_OVER"
TAKEN = "SLOTS_TAKEN"
DECISIONS = (COALESCED, MISFIRED, PASSED_OVER, TAKEN)
REDECLARED = "JOB_REDECLARED"
RETIRED = "JOB_RETIRED"

Slots = Sequence[datetime]


def introduce(job: Job, *, actor: str) -> ScheduledJob:
    """Return the job's row, creating it if needed. Its schedule may be one that another version has declared."""
    if row := ScheduledJob.objects.filter(name=job.name).first():
        return row
    now, schedule = clock.now(), _schedule_of(job)
    values = {"name": job.name, "decided_until": now, **schedule}
    data, message = schedule | {"since": now.isoformat()}, f"{job.cron} {job.time_zone}"
    # Another process may be creating the row at the same time.
    with suppress(IntegrityError), transaction.atomic():
        lifecycle.create(SCHEDULED_JOB_STATES, values, actor=actor, message=message, data=data)
    return ScheduledJob.objects.get(name=job.name)


def is_as_declared(row: ScheduledJob, job: Job) -> bool:
    return row.retired_at is None and (row.cron, row.time_zone) == (job.cron, job.time_zone)


def declare(job: Job, *, actor: str) -> None:
    """Store the schedule that the code declares now. It has no slots before this moment."""
    row = introduce(job, actor=actor)
    if is_as_declared(row, job):
        return
    now, schedule = clock.now(), _schedule_of(job)
    lifecycle.record(
        SCHEDULED_JOB_STATES,
        row.pk,
        REDECLARED,
        actor=actor,
        message=f"{job.cron} {job.time_zone}",
        data=schedule | {"since": now.isoformat()},
        guards={"cron": row.cron, "time_zone": row.time_zone, "retired_at__isnull": row.retired_at is None},
        **schedule,
        decided_until=now,
        retired_at=None,
    )


def retire(row: ScheduledJob, *, actor: str) -> bool:
    now, guards = clock.now(), {"retired_at__isnull": True}
    data = {"since": now.isoformat()}
    return lifecycle.record(
        SCHEDULED_JOB_STATES, row.pk, RETIRED, actor=actor, data=data, guards=guards, retired_at=now
    )


def pause(row: ScheduledJob, *, actor: str, reason: str = "") -> bool:
    """Pause the job. Return False if it is paused already."""
    return lifecycle.record(
        SCHEDULED_JOB_STATES,
        row.pk,
        "JOB_PAUSED",
        actor=actor,
        message=reason,
        guards={"paused_at__isnull": True},
        paused_at=clock.now(),
        paused_by=actor,
    )


def resume(row: ScheduledJob, *, actor: str) -> bool:
    """Resume the job. Slots that became due during the pause are skipped, whether or not they were decided. Return
    False if the job is not paused.
    """
    with transaction.atomic():
        row = ScheduledJob.objects.select_for_update().get(pk=row.pk)
        if row.paused_at is None:
            return False
        slots = cron.due_slots(row.cron, row.time_zone, row.decided_until, clock.now())
        record_passed_over(row, slots, actor=actor)
        return lifecycle.record(
            SCHEDULED_JOB_STATES,
            row.pk,
            "JOB_RESUMED",
            actor=actor,
            paused_at=None,
            paused_by="",
            decided_until=slots[-1] if slots else row.decided_until,
        )


def go_back(row: ScheduledJob, *, actor: str) -> bool:
    """Reset `decided_until` to now, after slots far ahead were decided because a clock had been set ahead."""
    now = clock.now()
    message = f"slots had been decided until {row.decided_until.isoformat()}, because a clock was ahead"
    return lifecycle.record(
        SCHEDULED_JOB_STATES,
        row.pk,
        "JOB_SET_BACK",
        actor=actor,
        message=message,
        guards={"decided_until": row.decided_until},
        decided_until=now,
    )


def decide(row: ScheduledJob, until: datetime) -> bool:
    """Mark every slot up to this moment as decided, in the caller's transaction. Return False if the row has changed
    since it was read, for example because another worker was first.
    """
    as_read = {"decided_until": row.decided_until, "paused_at": row.paused_at, "retired_at__isnull": True}
    return bool(ScheduledJob.objects.filter(pk=row.pk, **as_read).update(decided_until=until))


def record_request(row: ScheduledJob, message: str, data: dict[str, Any], *, actor: str) -> None:
    """Record that a person requested slots, which are then run outside of the schedule."""
    lifecycle.record(SCHEDULED_JOB_STATES, row.pk, "SLOTS_ASKED_FOR", actor=actor, message=message, data=data)


def record_coalesced(row: ScheduledJob, slots: Slots, into: datetime, *, actor: str) -> None:
    message = f"merged into the slot of {into.isoformat()}"
    record(row, slots, COALESCED, message, actor=actor, into=into.isoformat())


def record_misfired(row: ScheduledJob, slots: Slots, message: str, *, actor: str) -> None:
    record(row, slots, MISFIRED, message, actor=actor)


def record_passed_over(row: ScheduledJob, slots: Slots, *, actor: str) -> None:
    record(row, slots, PASSED_OVER, f"the job is paused by {row.paused_by}", actor=actor)


def record_taken(row: ScheduledJob, slots: Slots, *, actor: str) -> None:
    record(row, slots, TAKEN, "already claimed when its turn came", actor=actor)


def record(row: ScheduledJob, slots: Slots, decision: str, message: str, *, actor: str, **more: str) -> None:
    """Record a decision about consecutive slots in a single event, however many slots there are."""
    if not slots:
        return
    data = {"first": slots[0].isoformat(), "last": slots[-1].isoformat(), "count": len(slots), **more}
    lifecycle.record(SCHEDULED_JOB_STATES, row.pk, decision, actor=actor, message=message, data=data)


def _schedule_of(job: Job) -> dict[str, Any]:
    return {"cron": job.cron, "time_zone": job.time_zone}
