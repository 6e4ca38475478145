"""Documents that are to be processed again: one, or all of a workspace that somebody describes."""

from documents import embedding, lifecycle
from documents.models import Document, DocumentQuerySet, Workspace
from work.outcomes import Outcome


def again(document: Document, *, actor: str, in_bulk: bool) -> Outcome:
    """Many at once are begun in bulk: when nothing that has come in or was wanted singly is due."""
    if lifecycle.reprocess(document, actor=actor, in_bulk=in_bulk) is not None:
        return Outcome.MADE
    return foreseen(Document.objects.only("status", "purged_at").get(pk=document.pk))


def foreseen(document: Document) -> Outcome:
    """What would become of such a wish now."""
    if document.purged_at:
        return Outcome.PURGED
    return Outcome.UNDER_WAY if document.status == Document.Status.PROCESSING else Outcome.MADE


def chosen(workspace: Workspace, status: str | None, *, is_of_another_model: bool) -> DocumentQuerySet:
    """Those of a workspace that can be processed again, the oldest first."""
    found = workspace.documents.all().kept().filter(status__in=[status] if status else ["processed", "failed"])
    if is_of_another_model:
        found = found.exclude(embedding_model=embedding.model())
    return found.order_by("id")
