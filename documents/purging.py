"""Deletes the contents of one document. `documents/retention.py` decides which documents are due."""

from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Length

from documents.lifecycle import DOCUMENT_STATES
from documents.models import Document
from work import clock, failpoints, lifecycle

# A purge deletes these related rows of a document and sets these columns of the document itself.
CONTENTS = ("chunks", "fields", "corrections", "problems", "tables", "cell_corrections")
EMPTY: dict[str, Any] = {
    "file": "",
    "text": "",
    "embedding": None,
    "embedding_model": "",
    "type_reason": "",
    "invoice_key": "",
    "to_review": False,
    "words_job": None,
}


def purge(document_id: int, *, days: int, actor: str) -> dict[str, Any] | None:
    """Delete the contents of a document, but not its file. Return a summary of what was deleted.

    The document's history records the same summary.

    Return None if work needs the document, if another transaction has locked it, or if its workspace no longer has a
    retention of this many days.
    """
    skip = connection.features.has_select_for_update_skip_locked
    documents = Document.objects.filter(pk=document_id)
    with transaction.atomic():
        # The full lock conflicts with `retention.lock_against_purge`, so the next statement sees all committed work
        # that needs the document.
        if not documents.select_for_update(skip_locked=skip).values_list("pk", flat=True).first():
            return None
        due = documents.older_than(days).idle().filter(workspace__document_retention_days=days)
        contents = due.annotate(characters=Length("text")).values("status", "file", "size_bytes", "characters").first()
        if contents is None:
            return None
        failpoints.hit("retention.selected")
        rows = {}
        for name in CONTENTS:
            related = getattr(Document(pk=document_id), name).all()
            rows[name] = related.delete()[1].get(related.model._meta.label, 0)
        data: dict[str, Any] = {**rows, **contents, "days": days}
        guards = {"purged_at__isnull": True, "status": data.pop("status")}
        message = f"Older than {days} days, the retention of its workspace."
        values: dict[str, Any] = {"actor": actor, "message": message, "data": data, "purged_at": clock.now(), **EMPTY}
        if not lifecycle.record(DOCUMENT_STATES, document_id, "DOCUMENT_PURGED", guards=guards, **values):
            transaction.set_rollback(True)
            return None
    return data
