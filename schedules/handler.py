"""Handles scheduled jobs: runs the slot that has been due longest, but never two slots of one job at once."""

import time
from typing import Any

import structlog
from django.db import transaction

from schedules import history, job_runs
from schedules.job_runs import Refusal
from schedules.jobs import JobContext, JobFailed, all_jobs, job_named
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock
from work.claims import Claim, Interrupted, ResultRefused

# Most due slots that one claim considers. Each job runs one slot at a time, and its other slots wait.
PAGE = 50
# The longest error message that is stored.
LONGEST_ERROR = 2000

log = structlog.get_logger(__name__)

EXPECTED = (JobFailed,)


def claim(owner: str) -> Claim | None:
    """Claim the first due slot that is free. Raises Contended if the next tick should try again."""
    for due in _candidates():
        if result := _claim(due, owner):
            return result
    return None


def do(claim: Claim) -> int:
    job, slot = job_named(claim.values["job_name"]), claim.values["scheduled_for"]
    began = time.monotonic()
    about = {"job": job.name, "slot": slot.isoformat(), "job_run": claim.id}
    log.info("job.started", **about)
    try:
        rows = job.function(JobContext(job, slot, claim))
    except BaseException as error:
        write = log.info if isinstance(error, Interrupted) else log.warning
        write("job.ended", **about, seconds=round(time.monotonic() - began, 3), error=_message_of(error))
        raise
    log.info("job.ended", **about, seconds=round(time.monotonic() - began, 3), rows=rows)
    return rows


def succeed(claim: Claim, rows: int) -> bool:
    return job_runs.succeed(claim, rows)


def fail(claim: Claim, error: BaseException) -> bool:
    return job_runs.fail(claim, _message_of(error))


def _candidates() -> list[DueSlot]:
    # If this version does not declare a job, leave it to workers whose version does.
    slots = DueSlot.objects.filter(job_name__in=[job.name for job in all_jobs()])
    return list(slots.claimable()[:PAGE])


def _claim(due: DueSlot, owner: str) -> Claim | None:
    """Claim the slot and delete its DueSlot in one transaction. Return None if the slot must not run, or must wait."""
    with transaction.atomic():
        # Lock the job's row first, like everything that decides or requests its slots.
        row = ScheduledJob.objects.select_for_update().get(name=due.job_name)
        if not DueSlot.objects.filter(pk=due.pk).delete()[0]:
            return None
        if due.expires_at and due.expires_at < clock.now():
            message = "no worker had a free thread for it in time"
            last = JobRun.objects.filter(job_name=due.job_name, finished_at__isnull=False).order_by("-id").first()
            if last:
                message += f"; the job run before it, {last.pk}, ended at {last.finished_at:%H:%M:%S}"
            history.record_misfired(row, [due.scheduled_for], message, actor=owner)
            return None
        if row.paused_at and not due.asked_by:
            # The slot became due before the pause.
            history.record_passed_over(row, [due.scheduled_for], actor=owner)
            return None
        event: dict[str, Any] = {}
        if due.asked_by:
            event = {"message": f"requested by {due.asked_by}", "data": {"asked_by": due.asked_by}}
        if due.covers:
            event["data"]["covers"] = due.covers.isoformat()
            event["message"] += f", replacing the slot of {due.covers.isoformat()}"
        claim = job_runs.claim_slot(due.job_name, due.scheduled_for, owner, **event)
        if claim is Refusal.JOB_RUNNING:
            transaction.set_rollback(True)
            return None
        if claim is Refusal.SLOT_TAKEN:
            history.record_taken(row, [due.scheduled_for], actor=owner)
            return None
    assert isinstance(claim, Claim)
    return claim


def _message_of(error: BaseException) -> str:
    message = str(error) if isinstance(error, JobFailed | ResultRefused) else f"{type(error).__name__}: {error}"
    return message[:LONGEST_ERROR]
