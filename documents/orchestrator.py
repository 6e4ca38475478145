"""Begins jobs that are due and decides which of their stages are ready. It does none of the work itself."""

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from documents import breakers, lifecycle, outputs
from documents.models import DocumentProcessingJob, Stage
from documents.stages import segments_of
from work import clock

# Jobs per call; the task is called again at once as long as there is something to do.
MOST_JOBS = 100
# If this many stages wait for a service that is away, no further job begins, so that the other jobs keep their order.
MOST_BLOCKED = 100


def orchestrate(owner: str) -> int:
    """Return how many jobs have advanced."""
    advanced = 0
    # Begin only as many jobs as keep the threads busy: a job that begins and then waits for hours looks abandoned.
    while advanced < MOST_JOBS and count_claimable() < most_ready() and count_waiting_for_a_service() < MOST_BLOCKED:
        claim = lifecycle.begin_next_job(owner)
        if claim is None:
            break
        advanced += 1
        # Plan one segment: the number of pages is unknown until the first ones are read, and an earlier job may have
        # counted them differently.
        if lifecycle.plan(claim.id, 1, actor=owner):
            lifecycle.advance(claim.id, actor=owner)
    # Settle or advance jobs under way that have a failed stage, or neither a ready nor a running stage.
    stages = Stage.objects.filter(job=OuterRef("pk"))
    at_work = Exists(stages.filter(status__in=[Stage.Status.READY, Stage.Status.RUNNING]))
    failed = Exists(stages.filter(status=Stage.Status.ERROR))
    jobs = DocumentProcessingJob.objects.filter(~at_work | Q(failed), status=DocumentProcessingJob.Status.PROCESSING)
    for job in jobs.listed().order_by("id")[:MOST_JOBS]:
        if lifecycle.settle(job, actor=owner):
            advanced += 1
            if not DocumentProcessingJob.objects.live().filter(pk=job.pk).exists():
                # No stage reads the outputs any more. If they cannot be deleted now, `sweep_outputs` does it later.
                outputs.discard(job.pk)
        elif lifecycle.plan(job.pk, segments_of(job.document.pages or 1), actor=owner):
            advanced += lifecycle.advance(job.pk, actor=owner) > 0
    return advanced


def most_ready() -> int:
    """Return the limit for claimable stages: while there are this many or more, no further job begins."""
    return 2 * settings.ADE_STAGE_CONCURRENCY


def count_claimable() -> int:
    """Return the number of stages that a worker thread may claim now.

    Leave out READY stages of jobs that were given back or have failed, and stages that wait for a service.
    """
    return breakers.claimable_without(frozenset(breakers.away()))(clock.now()).count()


def count_waiting_for_a_service() -> int:
    away = frozenset(breakers.away())
    return breakers.waiting(away).count() if away else 0
