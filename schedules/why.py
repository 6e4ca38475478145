"""Explains why a job's slot has not started: see `work/why.py`.

For a due slot, the gates are the conditions of its claim. For a job without a due slot, the gates say whether a worker
will make its next slot due.
"""

from datetime import datetime

from django.conf import settings
from django.db.models import Q

from schedules import job_status
from schedules.job_runs import JOB_RUN_STATES
from schedules.jobs import all_jobs, is_declared
from schedules.models import DueSlot, DueSlotQuerySet, JobRun, ScheduledJob, SchedulerLease
from work import clock, why
from work.why import Explanation, Gate, LiveWorkers


def explain(row: ScheduledJob) -> Explanation:
    """Explain the job's first due slot, or its schedule if none is due."""
    due = DueSlot.objects.filter(job_name=row.name).in_turn().first()
    if due:
        return explain_due(due)
    crew = LiveWorkers.now()
    gates = (
        _of_code(row.name),
        _of_scheduler(crew),
        _of_pause(row, None),
        why.of_worker(crew, JOB_RUN_STATES),
        why.of_capacity(crew, JOB_RUN_STATES, 0),
        _of_job(row.name, None),
    )
    next_slot, blockers = _at(job_status.next_slot(row)), _blockers(gates, "it will start then")
    message = f"No slot of {row.name} is due; the next one is {next_slot}; {blockers}"
    # A declared job may have no row yet.
    return Explanation("scheduled_job", row.pk or 0, "expected", "expected", message, gates)


def explain_due(due: DueSlot) -> Explanation:
    """Explain a due slot as it was when `due` was read. It may have started since."""
    crew, row = LiveWorkers.now(), ScheduledJob.objects.filter(name=due.job_name).first()
    # Count jobs with a slot ahead of this one, not slots, because only one slot of each job can be claimed.
    others = [job.name for job in all_jobs() if job.name != due.job_name]
    slots = _without_lapsed(DueSlot.objects.claimable().filter(_before(due), job_name__in=others))
    ahead = len(set(slots.values_list("job_name", flat=True)[: why.MOST_COUNTED]))
    gates = (
        _of_code(due.job_name),
        _of_time(due),
        _of_pause(row, due),
        why.of_worker(crew, JOB_RUN_STATES),
        why.of_capacity(crew, JOB_RUN_STATES, ahead),
        _of_job(due.job_name, due),
    )
    blockers = _blockers(gates, "a worker will claim it shortly")
    message = (
        f"The slot of {due.job_name} for {_at(due.scheduled_for)} has been due since {_at(due.due_at)}; {blockers}"
    )
    if due.expires_at:
        message += f" It will be dropped if it has not started by {_at(due.expires_at)}."
    return Explanation("due_slot", due.pk, "waiting", "waiting", message, gates)


def _of_code(name: str) -> Gate:
    """Return the gate for the job's declaration: workers only claim slots of jobs that their code declares."""
    if is_declared(name):
        return Gate("code", False, "The code declares the job.")
    return Gate("code", True, f"The code no longer declares a job named {name}.")


def _of_scheduler(crew: LiveWorkers) -> Gate:
    """Return the gate that blocks unless some worker looks at the schedules."""
    lease = SchedulerLease.objects.filter(expires_at__gt=clock.now()).first()
    data = {"holder": lease.owner if lease else None, "ade_schedules": settings.ADE_SCHEDULES}
    if lease:
        return Gate("schedule", False, f"{lease.owner} runs the scheduler.", lease.owner, data=data)
    last = SchedulerLease.objects.first()
    since = last.expires_at if last else None
    state = f"No worker has run the scheduler since {_at(since)}" if since else "No worker runs the scheduler"
    reason = "no live worker has ADE_SCHEDULES=true" if crew.workers else "no worker is alive"
    return Gate("schedule", True, f"{state}: {reason}.", since=since, data=data)


def _of_time(due: DueSlot) -> Gate:
    """Return the gate for the slot's deadline."""
    origin = f"{due.asked_by} requested it" if due.asked_by else "It was handed to the workers"
    message = f"{origin} at {_at(due.due_at)}."
    if due.expires_at and due.expires_at < clock.now():
        message += f" It will be dropped, because it did not start by {_at(due.expires_at)}."
        return Gate("schedule", True, message, since=due.expires_at)
    return Gate("schedule", False, message, since=due.due_at)


def _of_pause(row: ScheduledJob | None, due: DueSlot | None) -> Gate:
    if row is None or row.paused_at is None:
        return Gate("pause", False, "The job is not paused.")
    message = f"The job was paused {why.by(row.paused_by, row.paused_at)}"
    if due and due.asked_by:
        return Gate("pause", False, f"{message}, but requested slots still run.", row.paused_by, row.paused_at)
    then = "the slot will be skipped" if due else "its slots are skipped"
    return Gate("pause", True, f"{message}: {then}.", row.paused_by, row.paused_at)


def _of_job(name: str, due: DueSlot | None) -> Gate:
    """Return the gate for other slots of the job, because two never run at once."""
    running = JobRun.objects.filter(job_name=name, status=JobRun.CLAIMED).first()
    if running:
        by = why.by(running.lease_owner, running.started_at)
        message = f"Its slot for {_at(running.scheduled_for)} is running as job run {running.pk}, claimed {by}."
        data = {"id": running.pk, "slot": running.scheduled_for, "by": running.lease_owner}
        # A slot that is not due yet does not wait for the running job run.
        return Gate("job", due is not None, message, f"job_run {running.pk}", running.started_at, data)
    if due:
        earlier = _without_lapsed(DueSlot.objects.filter(_before(due), job_name=due.job_name))
        if first := earlier.in_turn().first():
            data = {"id": None, "slot": first.scheduled_for, "by": None}
            message = f"Its slot for {_at(first.scheduled_for)} goes first."
            return Gate("job", True, message, since=first.due_at, data=data)
    return Gate("job", False, "No other slot of the job is ahead of it.")


def _without_lapsed(slots: DueSlotQuerySet) -> DueSlotQuerySet:
    """Exclude slots that will be dropped or skipped, because they delay no other slot."""
    paused = ScheduledJob.objects.filter(paused_at__isnull=False).values("name")
    return slots.exclude(expires_at__lt=clock.now()).exclude(asked_by="", job_name__in=paused)


def _before(due: DueSlot) -> Q:
    """Return the condition for slots ahead of this one. See `DueSlotQuerySet.in_turn` for the order."""
    earlier = Q(due_at__lt=due.due_at) | Q(due_at=due.due_at, pk__lt=due.pk)
    return Q(asked_by="") | earlier if due.asked_by else Q(asked_by="") & earlier


def _blockers(gates: tuple[Gate, ...], otherwise: str) -> str:
    names = [gate.name for gate in gates if gate.holds]
    return f"blocked by: {', '.join(names)}." if names else f"nothing blocks it: {otherwise}."


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
