"""Begins jobs that are due and decides which of their stages are ready. It does none of the work itself."""

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
    advanced = 0
    # Begin only as many jobs as keep the threads busy: one that has begun but waits for hours would look abandoned.
    while advanced < MOST_JOBS and count_claimable() < most_ready() and count_waiting_for_a_service() < MOST_BLOCKED:
        claim = lifecycle.begin_next_job(owner)
        if claim is None:
            break
        advanced += 1
        # The length is unknown before the first pages are read; an earlier job may have counted the pages differently.
        if lifecycle.plan(claim.id, 1, actor=owner):
            lifecycle.advance(claim.id, actor=owner)
    # Settle or advance jobs under way that have no ready or running stage, or a failed one.
    stages = Stage.objects.filter(job=OuterRef("pk"))
    at_work = Exists(stages.filter(status__in=[Stage.Status.READY, Stage.Status.RUNNING]))
    failed = Exists(stages.filter(status=Stage.Status.ERROR))
    jobs = DocumentProcessingJob.objects.filter(~at_work | Q(failed), status=DocumentProcessingJob.Status.PROCESSING)
    for job in jobs.listed().order_by("id")[:MOST_JOBS]:
        if lifecycle.settle(job, actor=owner):
            advanced += 1
            if not DocumentProcessingJob.objects.live().filter(pk=job.pk).exists():
                # No stage reads the outputs any more. If this fails, a task removes them.
                outputs.discard(job.pk)
        elif lifecycle.plan(job.pk, segments_of(job.document.pages or 1), actor=owner):
            advanced += lifecycle.advance(job.pk, actor=owner) > 0
    return advanced


def most_ready() -> int:
    """Return the number of claimable stages at which no further job is begun."""
    return 2 * settings.ADE_STAGE_CONCURRENCY


def count_claimable() -> int:
    """Return the number of stages that a worker thread may claim now.

    This leaves out READY stages of jobs that were given back or have failed, and stages that wait for a service.
    """
    return breakers.claimable_without(frozenset(breakers.away()))(clock.now()).count()


def count_waiting_for_a_service() -> int:
    away = frozenset(breakers.away())
    return breakers.waiting(away).count() if away else 0
