"""Deletes the contents of documents that are older than the retention of their workspace. The row stays.

Each document is purged in its own transaction, and its files are deleted afterwards. If a worker dies in between, files
without a row remain, and `documents/periodic.py` removes them.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import Count, Min, OuterRef, Q, Subquery, Sum

from documents import outputs, previews, purging, words
from documents.models import Document, DocumentProcessingJob
from work import failpoints
from work.sql import compiled, statements
from work.sql.contention import is_contention
from workspaces.models import Workspace

# After this time, the task purges no further document in this call, because other tasks of the worker wait.
SECONDS_AT_ONCE = 0.1
PAGE = 50
SAMPLE = 5

log = structlog.get_logger(__name__)


class Purged(Exception):
    """The contents of the document have been deleted, so the request cannot be fulfilled."""

    code = "purged"

    def __init__(self, document: Document) -> None:
        super().__init__(f"Document {document.pk} was {purged_on(document)}. Upload its file again.")
        self.document = document


@dataclass(frozen=True)
class RetentionPreview:
    """What a retention would delete now. `kept` counts due documents that it would keep because work needs them."""

    documents: int
    size_bytes: int
    oldest: datetime | None
    kept: int
    sample: list[Mapping[str, Any]]


def purged_on(document: Document) -> str:
    return f"purged on {document.purged_at:%Y-%m-%d %H:%M} UTC"


def lock_against_purge(document_ids: Sequence[int]) -> None:
    """Prevent these documents from being purged until the end of the transaction.

    Raises Purged if one of them has been purged already.
    """
    # PostgreSQL checks foreign keys at the commit, which is too late. This lock conflicts with nothing but a purge. On
    # SQLite, transactions already exclude each other.
    lock = {"postgresql": " FOR KEY SHARE", "sqlite": ""}.get(connection.vendor)
    if lock is None:
        rows = list(_purge_times(document_ids).select_for_update())
    else:
        if len(document_ids) == 1:
            sql, params = compiled.sql_and_params(_purge_time, document_ids[0])
        else:
            sql, params = _purge_times(document_ids).query.sql_with_params()
        rows = statements.rows(f"{sql}{lock}", params)
    if purged := [id for id, purged_at in rows if purged_at]:
        raise Purged(Document.objects.only("purged_at").get(pk=purged[0]))


def preview(workspace: Workspace, days: int | None) -> RetentionPreview:
    if days is None:
        return RetentionPreview(0, 0, None, 0, [])
    due = workspace.documents.all().older_than(days)
    idle = due.idle()
    totals = idle.aggregate(documents=Count("pk"), size_bytes=Sum("size_bytes", default=0), oldest=Min("created_at"))
    sample = idle.order_by("created_at", "id").values("id", "name", "size_bytes", "created_at")[:SAMPLE]
    return RetentionPreview(**totals, kept=due.count() - totals["documents"], sample=list(sample))


def is_shorter(days: int | None, before: int | None) -> bool:
    return days is not None and (before is None or days < before)


def set_policy(workspace: Workspace, days: int | None, *, actor: str) -> None:
    before, workspace.document_retention_days = workspace.document_retention_days, days
    workspace.save(update_fields=["document_retention_days"])
    log_policy(workspace, before, actor=actor)


def log_policy(workspace: Workspace, before: int | None, *, actor: str) -> None:
    after = workspace.document_retention_days
    log.info("retention.policy", workspace=workspace.pk, before_days=before, after_days=after, actor=actor)


def purge_due(owner: str) -> int:
    """The periodic task: purge some of the due documents, in each workspace the oldest first."""
    until = time.monotonic() + SECONDS_AT_ONCE
    policies = Workspace.objects.filter(document_retention_days__isnull=False).order_by()
    workspaces: list[Workspace] = []
    for days in policies.values_list("document_retention_days", flat=True).distinct():
        assert days is not None
        # Select the first row, which uses the index. For EXISTS, PostgreSQL would collect all due documents of all
        # workspaces.
        due = Document.objects.older_than(days).filter(workspace=OuterRef("pk")).order_by("created_at", "id")
        candidates = policies.filter(document_retention_days=days)
        workspaces += candidates.annotate(first_due=Subquery(due.values("pk")[:1])).filter(first_due__isnull=False)
    # Shuffle, so that every workspace gets its turn even if the first ones use up the time, and so that workers do not
    # collide.
    random.shuffle(workspaces)
    for workspace in workspaces:
        for _ in purge(workspace, actor=owner):
            if time.monotonic() > until:
                return 0
    # Return 0, because no work waits for this: any other number would wake the worker's threads.
    return 0


def purge(workspace: Workspace, *, actor: str) -> Iterator[dict[str, Any] | None]:
    """Purge each due document and yield what was deleted, or None if it was locked or work needs it by now."""
    days = workspace.document_retention_days
    if days is None:
        return
    for id in _due(workspace, days):
        try:
            contents = purging.purge(id, days=days, actor=actor)
        except Exception as error:
            # The row is locked. Continue with the other documents; a later call tries this one again.
            if not is_contention(error):
                raise
            contents = None
        failpoints.hit("retention.purged")
        if contents is not None:
            _remove_files(id, contents["file"])
        yield contents


def _purge_times(document_ids: Sequence[int]) -> Any:
    # Lock in a fixed order, so that two transactions that lock several documents do not deadlock.
    return Document.objects.filter(pk__in=set(document_ids)).order_by("pk").values_list("pk", "purged_at")


def _purge_time(document_id: int) -> Any:
    return Document.objects.filter(pk=document_id).values_list("pk", "purged_at")


def _remove_files(document_id: int, key: str) -> None:
    try:
        previews.forget(Document.objects.values_list("sha256", flat=True).get(pk=document_id))
        if key:
            default_storage.delete(key)
        for job_id in DocumentProcessingJob.objects.filter(document=document_id).values_list("pk", flat=True):
            outputs.discard(job_id)
            words.discard(job_id)
    except Exception as error:
        # The storage is unavailable; the sweepers remove the files later.
        log.warning("retention.files_left", document=document_id, file=key, error=repr(error))


def _due(workspace: Workspace, days: int) -> Iterator[int]:
    """Yield the IDs of due documents, oldest first. Read the next page even if documents could not be purged."""
    due = workspace.documents.all().older_than(days).idle().order_by("created_at", "id")
    page: Any = due
    while rows := list(page.values_list("created_at", "id")[:PAGE]):
        yield from (id for _, id in rows)
        at, id = rows[-1]
        page = due.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=id), created_at__gte=at)
