"""Begins jobs that are due and decides which of their stages are ready. It does none of the work itself."""

from collections.abc import Iterable

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from documents import breakers, lifecycle, outputs
from documents.models import DocumentProcessingJob, Stage
from documents.stages import segments_of
from work import clock

# Jobs per call; the task is called again at once as long as there is something to do.
MOST_JOBS = 100
# If this many stages wait for a service that is away, no further job is begun, so that the rest keeps its order.
MOST_BLOCKED = 100


def orchestrate(owner: str) -> int:
    """Return how many jobs have advanced."""
    return _begin(owner) + sum(_bring_on(job, owner) for job in _waiting())


def most_ready() -> int:
    """Return the number of stages waiting for a slot at which no further job is begun."""
    return 2 * settings.ADE_STAGE_CONCURRENCY


def waiting_for_a_slot() -> int:
    """Return the number of stages that a slot may claim now.

    This leaves out READY stages of jobs that were given back or have failed, and stages that wait for a service.
    """
    return breakers.claimable_without(frozenset(breakers.away()))(clock.now()).count()


def waiting_for_a_service() -> int:
    away = frozenset(breakers.away())
    return breakers.waiting(away).count() if away else 0


def _begin(owner: str) -> int:
    """Begin only as many jobs as keep the slots busy: a job that has begun but waits for hours would look abandoned."""
    begun = 0
    while begun < MOST_JOBS and waiting_for_a_slot() < most_ready() and waiting_for_a_service() < MOST_BLOCKED:
        claim = lifecycle.begin_next_job(owner)
        if claim is None:
            break
        begun += 1
        # The length is unknown before the first pages are read; an earlier job may have counted the pages differently.
        if lifecycle.plan(claim.id, 1, actor=owner):
            lifecycle.advance(claim.id, actor=owner)
    return begun


def _waiting() -> Iterable[DocumentProcessingJob]:
    """Return jobs under way that have no ready or running stage, or a failed one."""
    stages = Stage.objects.filter(job=OuterRef("pk"))
    at_work, failed = Exists(stages.filter(status__in=["READY", "RUNNING"])), Exists(stages.filter(status="ERROR"))
    under_way = DocumentProcessingJob.objects.filter(~at_work | Q(failed), status="PROCESSING")
    return under_way.listed().order_by("id")[:MOST_JOBS]


def _bring_on(job: DocumentProcessingJob, owner: str) -> int:
    if lifecycle.settle(job, actor=owner):
        if not DocumentProcessingJob.objects.live().filter(pk=job.pk).exists():
            # No stage reads the outputs any more. If this fails, a task removes them.
            outputs.discard(job.pk)
        return 1
    if not lifecycle.plan(job.pk, segments_of(job.document.pages or 1), actor=owner):
        return 0
    return 1 if lifecycle.advance(job.pk, actor=owner) else 0
