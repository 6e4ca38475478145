"""Explains why a document is not processed yet: see `work/why.py`.

Workers do not claim documents: a job begins when it is due and its turn has come, and then workers claim its stages.
The answer reveals nothing about other documents except their number.
"""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.text import capfirst

from documents import breakers, orchestrator
from documents.lifecycle import DOCUMENT_STATES, JOB_STATES, STAGE_STATES
from documents.models import Document, DocumentProcessingJob, Stage
from work import clock, why
from work.why import Explanation, Gate, LiveWorkers


def explain(document: Document) -> Explanation:
    """Explain the current state. Raises Document.DoesNotExist."""
    job = DocumentProcessingJob.objects.live().filter(document=document.pk).first()
    if job is None:
        status = Document.objects.values_list("status", flat=True).get(pk=document.pk)
        return _explanation(document.pk, status, f"is {status}", ())
    crew = LiveWorkers.now()
    is_pending = job.status == JOB_STATES.initial
    of_job = (_time_gate(job), _turn_gate(job)) if is_pending else (_stages_gate(crew, job),)
    gates = (why.of_worker(crew, STAGE_STATES), *of_job)
    holding = [gate.name for gate in gates if gate.holds]
    summary = f"blocked by: {', '.join(holding)}" if holding else "nothing blocks it"
    return _explanation(document.pk, DOCUMENT_STATES.initial, f"is being processed; {summary}", gates)


def _explanation(id: int, status: str, state: str, gates: tuple[Gate, ...]) -> Explanation:
    return Explanation(DOCUMENT_STATES.kind, id, status, status, f"Document {id} {state}.", gates)


def _time_gate(job: DocumentProcessingJob) -> Gate:
    """Check whether the next attempt is due."""
    due = job.next_attempt_at
    data = {"attempts": job.attempts, "max_attempts": job.max_attempts, "next_attempt_at": due}
    attempt = f"Attempt {job.attempts + 1} of {job.max_attempts}"
    if due <= clock.now():
        return Gate("time", False, f"{attempt} is due.", data=data)
    before = " The previous attempt failed; see its job." if job.attempts else ""
    return Gate("time", True, f"{attempt} is due {why.at(due)}.{before}", f"job {job.pk}", data=data)


def _turn_gate(job: DocumentProcessingJob) -> Gate:
    """Check whether other jobs come first, and whether any job can begin at present."""
    due = DocumentProcessingJob.objects.filter(
        status=DocumentProcessingJob.Status.PENDING, next_attempt_at__lte=clock.now()
    )
    earlier = Q(next_attempt_at__lt=job.next_attempt_at) | Q(next_attempt_at=job.next_attempt_at, pk__lt=job.pk)
    ahead = len(why.counted(due.filter(Q(priority__lt=job.priority) | Q(earlier, priority=job.priority))))
    ready, most = orchestrator.count_claimable(), orchestrator.most_ready()
    blocked = orchestrator.count_waiting_for_a_service()
    data = {"ahead": ahead, "ready": ready, "most_ready": most}
    message = f"{capfirst(why.are_ahead(JOB_STATES, ahead))}."
    if job.priority:
        message += " It is part of a bulk reprocessing, which runs when nothing else is due."
    if ready >= most:
        message += f" {ready} stages wait for a worker thread; the next job begins when fewer than {most} wait."
    is_held_up = blocked >= orchestrator.MOST_BLOCKED
    if is_held_up:
        names = " and ".join(breakers.away())
        message += f" {blocked} stages wait for {names} to answer; until then, no other job begins."
    return Gate("turn", ahead > 0 or ready >= most or is_held_up, message, data=data)


def _stages_gate(crew: LiveWorkers, job: DocumentProcessingJob) -> Gate:
    """Check whether a stage is running, or all stages wait for a worker thread."""
    stages = list(Stage.objects.filter(job=job).order_by("created_at", "pk"))
    running = [stage for stage in stages if stage.status == Stage.Status.RUNNING]
    ready = [stage for stage in stages if stage.status == Stage.Status.READY]
    data: dict[str, Any] = {"running": len(running), "ready": len(ready), "all": len(stages)}
    if running:
        names = ", ".join(f"{stage.name} {stage.segment}" for stage in running[: why.MOST_NAMED])
        return Gate("stages", False, f"Running: {names}.", f"job {job.pk}", running[0].started_at, data)
    if not ready:
        return Gate("stages", False, "A worker advances it within a tick.", f"job {job.pk}", job.started_at, data)
    if gate := _service_gate(job):
        return gate
    # Explain why the first stage waits in the same way as for a run. Stages of all documents count as running or ahead.
    first = ready[0]
    ahead = why.count(_stages_ahead, first.created_at, first.pk)
    capacity = why.of_capacity(crew, STAGE_STATES, ahead, lambda ids: set())
    data |= {name: capacity.data[name] for name in ("slots", "free", "ahead")}
    message = f"Its stages are ready. {capacity.message}"
    if capacity.holds:
        message = f"Its stages wait for a free worker thread; {why.are_ahead(STAGE_STATES, ahead)}."
    return Gate("stages", capacity.holds, message, f"job {job.pk}", first.created_at, data)


def _service_gate(job: DocumentProcessingJob) -> Gate | None:
    """Check whether the job needs a service that is away."""
    for service in breakers.away().values():
        if not breakers.waiting(frozenset([service.name])).filter(job=job).exists():
            continue
        due = service.next_try_at
        data = {"service": service.name, "failures": service.failures, "next_try_at": due, "message": service.message}
        again = "It is called again" if due is None or service.is_due() else f"It is called again {why.at(due)}"
        rule = "for one document at a time; until then, no attempt is counted."
        message = f"{service.name} does not answer. {again}, {rule} {service.message}"
        return Gate("service", True, message, service.name, service.away_since, data)
    return None


def _stages_ahead(created_at: datetime, id: int) -> "QuerySet[Stage, tuple[int]]":
    earlier = Q(created_at__lt=created_at) | Q(created_at=created_at, pk__lt=id)
    return why.counted(Stage.objects.claimable(clock.now()).filter(earlier))
