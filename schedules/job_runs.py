"""Job runs: executions of scheduled jobs. A worker claims a slot by inserting its row, and the database decides which
worker is first.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from schedules.models import JobRun
from work import clock, failpoints, lifecycle, recovery
from work.claims import Claim, LeaseHolder
from work.models import Event
from work.recovery import LostClaim
from work.sql.contention import Contended
from work.state_machine import By, StateMachine, Transition

JOB_RUN_STATES = StateMachine(
    kind="job_run",
    model=JobRun,
    initial=JobRun.Status.RUNNING,
    created="SLOT_CLAIMED",
    pruned="SLOT_PRUNED",
    table={
        "succeed": Transition((JobRun.Status.RUNNING,), JobRun.Status.SUCCESS, By.HOLDER, "SLOT_SUCCEEDED"),
        "fail": Transition((JobRun.Status.RUNNING,), JobRun.Status.FAILED, By.HOLDER, "SLOT_FAILED"),
        "orphan": Transition((JobRun.Status.RUNNING,), JobRun.Status.FAILED, By.RECOVERY, "SLOT_FAILED"),
        "skip": Transition((JobRun.Status.RUNNING,), JobRun.Status.SKIPPED_TIMEOUT, By.RECOVERY, "SLOT_ABANDONED"),
    },
    events={
        "SLOT_CLAIMED": "A worker claimed the slot by inserting it.",
        "SLOT_SUCCEEDED": "The job succeeded.",
        "SLOT_FAILED": "The job failed, or its worker was lost.",
        "SLOT_ABANDONED": "It ran for too long; a late result is refused.",
        "SLOT_PRUNED": (
            "It is older than `ADE_KEEP_JOB_RUNS`: earlier events were deleted; the data have the number of `events`"
            " and who had requested the slot."
        ),
    },
)

# The error messages of job runs whose worker is gone, by recovery rule. The specification requires this wording.
_MESSAGES = {recovery.EARLIER_BOOT: "worker_startup_recovery"}


class Refusal(StrEnum):
    SLOT_TAKEN = "slot_already_claimed"
    JOB_RUNNING = "job_already_running"


def claim_slot(
    job_name: str, scheduled_for: datetime, owner: str, *, message: str = "", data: lifecycle.Data | None = None
) -> Claim | Refusal:
    """Claim the slot, or return why it was refused. No query precedes the insert, because the constraints decide.

    Raises Contended if the row that caused a conflict is already gone.
    """
    if scheduled_for.tzinfo is None:
        raise TypeError(f"A slot needs a time zone, but {scheduled_for.isoformat()} has none")
    began, now = time.monotonic(), clock.now()
    values = {
        "job_name": job_name,
        "scheduled_for": scheduled_for,
        "created_at": now,
        "started_at": now,
        "worker_instance": owner[:128],
        "lease_owner": owner,
        "lease_expires_at": now + timedelta(seconds=settings.ADE_LEASE_SECONDS),
        "claim_token": 1,
    }
    try:
        with failpoints.inside("job_run.claim.selected"), transaction.atomic():
            (id,) = lifecycle.create(JOB_RUN_STATES, values, actor=owner, message=message, data=data)
    except IntegrityError as error:
        of_job = JobRun.objects.filter(job_name=job_name)
        if of_job.filter(scheduled_for=scheduled_for).exists():
            return Refusal.SLOT_TAKEN
        if of_job.filter(status=JobRun.Status.RUNNING).exists():
            return Refusal.JOB_RUNNING
        raise Contended(f"job_run: {error}") from error
    failpoints.hit("slot.inserted")
    slot = {"job_name": job_name, "scheduled_for": scheduled_for}
    return Claim(JOB_RUN_STATES, id, LeaseHolder(owner, 1), lifecycle.lease_trusted_until(began), slot)


def succeed(claim: Claim, rows_processed: int | None = None) -> bool:
    return lifecycle.finish(claim, "succeed", rows_processed=rows_processed)


def fail(claim: Claim, message: str) -> bool:
    return lifecycle.finish(claim, "fail", message=message, error_message=message)


def skip_stale(job_name: str, older_than: timedelta, *, actor: str) -> int:
    """Give up runs of this job that have run for too long. If their workers finish later, the results are refused."""
    if clock.jumped_within(settings.ADE_LEASE_SECONDS):
        # A clock was set, so new job runs may look old. Those that are really stale are given up a little later.
        return 0
    message = f"running for longer than {older_than.total_seconds():.0f} s"
    stale = JobRun.objects.running_since_before(clock.now() - older_than).filter(job_name=job_name)
    skip: Mapping[str, Any] = {"actor": actor, "message": message, "error_message": message}
    return sum(lifecycle.move(JOB_RUN_STATES, id, "skip", **skip) for id in stale.values_list("pk", flat=True))


def prune(ids: Sequence[int], where: Q, *, actor: str) -> int:
    """Prune the history of the job runs with these ids, if they match `where`. Return the number of deleted events.

    The rows stay, and so does the record of who requested a slot.
    """

    def requests(ids: Sequence[int]) -> Mapping[int, lifecycle.Data]:
        events = request_events().filter(subject_id__in=ids)
        return {id: data or {} for id, data in events.values_list("subject_id", "data")}

    data = lifecycle.prune(JOB_RUN_STATES, ids, where=where, actor=actor, also=requests)
    return sum(each["events"] for each in data.values())


def request_events() -> "QuerySet[Event]":
    """Select the events whose data say who requested a slot, and which slot it replaces."""
    kinds = (JOB_RUN_STATES.created, JOB_RUN_STATES.pruned)
    return Event.objects.filter(subject_kind=JOB_RUN_STATES.kind, kind__in=kinds, data__isnull=False)


def rescue(lost: LostClaim) -> str | None:
    message = _MESSAGES.get(lost.rule, lost.rule)
    return lost.move("orphan", message=message, error_message=message)
