"""The job that deletes expired data, and the list of all retention policies."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from documents import retention as documents
from schedules.jobs import Job, JobContext
from work.pruning import Batch, Policy
from workspaces.models import Workspace

# This number is counted, but not as deletions, because tombstones are added in place of the deleted articles.
CAME = "tombstones_set"

log = structlog.get_logger(__name__)


def all_policies() -> Iterator[Policy]:
    """Yield the policies of the settings in order. They are loaded by dotted path, because this app must not import the
    apps that import it.
    """
    yield from map(import_string, settings.RETENTION)


def clean_up(turn: JobContext) -> int:
    """Delete expired data. Return how many rows, files and environments were deleted. If it is interrupted, the next
    slot continues.
    """
    gone: Counter[str] = Counter()
    longest = 0.0
    try:
        turn.go_on()
        for batch in _batches(turn.owner):
            gone.update(batch.gone)
            longest = max(longest, batch.seconds)
            turn.go_on()
    finally:
        log.info("retention.done", job_run=turn.claim.id, longest_seconds=round(longest, 3), **gone)
    return gone.total() - gone[CAME]


def _batches(actor: str) -> Iterator[Batch]:
    for policy in all_policies():
        yield from policy.purge(actor)
    # Purge documents that the workers, which purge continuously, have not reached yet.
    for workspace in Workspace.objects.order_by("id"):
        for document in documents.purge(workspace, actor=actor):
            yield Batch({"documents": int(document is not None)})


RETENTION = Job(
    name="retention_cleanup",
    about="Deletes expired data: articles, histories of old runs and slots, unused environments.",
    cron="20 3 * * *",
    time_zone="UTC",
    function=clean_up,
    max_runtime=timedelta(minutes=60),
    # All expired data is deleted at once, however many slots were missed.
    coalesce=True,
    misfire_grace=timedelta(hours=12),
)
