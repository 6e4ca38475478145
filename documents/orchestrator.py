"""Takes up jobs that are due, and brings those under way on: it decides what is ready, and does no work itself."""

from collections.abc import Iterable

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from documents import lifecycle, outputs
from documents.models import DocumentProcessingJob, Stage
from documents.stages import segments_of
from work import clock

# In one look; the chore comes again at once as long as there is something to do.
MOST_JOBS = 100


def orchestrate(owner: str) -> int:
    """Answers how many jobs it has brought on."""
    return _begin(owner) + sum(_bring_on(job, owner) for job in _waiting())


def most_ready() -> int:
    """When so many stages wait for a slot, no other job is begun."""
    return 2 * settings.ADE_STAGE_CONCURRENCY


def waiting_for_a_slot() -> int:
    """Those that a slot may claim: what a job that was given back or has failed left READY keeps nobody busy."""
    return Stage.objects.claimable(clock.now()).count()


def _begin(owner: str) -> int:
    """As many as keep the slots busy: a job that is under way and waits for hours would look abandoned."""
    begun = 0
    while waiting_for_a_slot() < most_ready():
        claim = lifecycle.begin_next_job(owner)
        if claim is None:
            break
        begun += 1
        # How long it is is not known before its first pages have been read; an earlier job may have counted otherwise.
        if lifecycle.plan(claim.id, 1, actor=owner):
            lifecycle.advance(claim.id, actor=owner)
    return begun


def _waiting() -> Iterable[DocumentProcessingJob]:
    """Those under way of which no stage is being done or can be."""
    stages = Stage.objects.filter(job=OuterRef("pk"))
    at_work, failed = Exists(stages.filter(status__in=["READY", "RUNNING"])), Exists(stages.filter(status="ERROR"))
    under_way = DocumentProcessingJob.objects.filter(~at_work | Q(failed), status="PROCESSING")
    return under_way.listed().order_by("id")[:MOST_JOBS]


def _bring_on(job: DocumentProcessingJob, owner: str) -> int:
    if lifecycle.settle(job, actor=owner):
        if not DocumentProcessingJob.objects.live().filter(pk=job.pk).exists():
            # Nobody goes on from there. If this does not come to pass, it is swept.
            outputs.discard(job.pk)
        return 1
    if not lifecycle.plan(job.pk, segments_of(job.document.pages or 1), actor=owner):
        return 0
    return 1 if lifecycle.advance(job.pk, actor=owner) else 0
