"""The job that lets go of what is kept for no longer, and all that it looks at, in its order."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from documents import retention as documents
from documents.models import Workspace
from runs.jobs import Job, Turn
from work.pruning import Batch, Policy

# What is counted and has not gone: it came in the place of what has.
CAME = "tombstones_set"

log = structlog.get_logger(__name__)


def all_policies() -> Iterator[Policy]:
    """By dotted path: what is kept further right on the line is not imported here."""
    yield from map(import_string, settings.RETENTION)


def clean_up(turn: Turn) -> int:
    """Answers how many rows, files and environments have gone. Whatever ends it: the next slot goes on."""
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
    yield from _documents(actor)


def _documents(actor: str) -> Iterator[Batch]:
    """Workers do it all the time: this is what they have not come to yet."""
    for workspace in Workspace.objects.order_by("id"):
        for there in documents.purge(workspace, actor=actor):
            yield Batch({"documents": int(there is not None)})


RETENTION = Job(
    name="retention_cleanup",
    about="Lets go of what is kept for no longer: articles, what old runs and slots have told, unused environments.",
    cron="20 3 * * *",
    time_zone="UTC",
    function=clean_up,
    max_runtime=timedelta(minutes=60),
    # What is due is due, however many slots were missed.
    coalesce=True,
    misfire_grace=timedelta(hours=12),
)
