"""Processes documents again: single documents, or all documents of a workspace that match a filter."""

from documents import embedding, lifecycle
from documents.lifecycle import DOCUMENT_STATES
from documents.models import Document, DocumentQuerySet
from work.operations.outcomes import Outcome
from workspaces.models import Workspace

REPROCESSABLE = frozenset(DOCUMENT_STATES["reopen"].origins)


def reprocess(document: Document, *, actor: str, in_bulk: bool) -> Outcome:
    """Process a document again. With `in_bulk`, the new job begins only when no normal job is due."""
    if lifecycle.reprocess(document, actor=actor, in_bulk=in_bulk) is not None:
        return Outcome.MADE
    return preview(Document.objects.only("status", "purged_at").get(pk=document.pk))


def preview(document: Document) -> Outcome:
    """Return what `reprocess` would do now."""
    if document.purged_at:
        return Outcome.PURGED
    return Outcome.UNDER_WAY if document.status == Document.Status.PROCESSING else Outcome.MADE


def select(workspace: Workspace, status: str | None, *, is_of_another_model: bool) -> DocumentQuerySet:
    """Return the documents of a workspace that can be processed again, oldest first."""
    statuses = [status] if status else sorted(REPROCESSABLE)
    documents = workspace.documents.all().kept().filter(status__in=statuses)
    if is_of_another_model:
        documents = documents.exclude(embedding_model=embedding.model())
    return documents.order_by("id")
