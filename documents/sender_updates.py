"""Brings the documents of a sender up to date after what is known about it has changed, some at a time.

The rest of the work is in a row, so that it survives the worker that does it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from documents import fields, learning, senders, types, words
from documents.choosing import SENDER
from documents.models import Document, DocumentField, Sender, SenderUpdate
from work import failpoints

# Documents per transaction, so that no lock is held for long.
BATCH = 20


def advance(_owner: str = "") -> int:
    """The periodic task: update the next documents of one sender."""
    if update := SenderUpdate.objects.select_related("sender").order_by("id").first():
        _advance(update)
    # Return 0, because no work waits for this: any other number would wake the worker's threads.
    return 0


def _advance(update: SenderUpdate) -> None:
    ids = list(_left(update).values_list("pk", flat=True)[:BATCH])
    # Read the files before the transaction.
    jobs = dict(Document.objects.filter(pk__in=ids).values_list("pk", "words_job"))
    pages = {id: words.load(job) for id, job in jobs.items()}
    with transaction.atomic():
        # First the documents, as whoever corrects one does.
        documents = Document.objects.filter(pk__in=ids).order_by("-id").select_for_update()
        is_same = dict(documents.values_list("pk", "words_job")) == jobs
        skip = connection.features.has_select_for_update_skip_locked
        current = SenderUpdate.objects.select_for_update(skip_locked=skip).filter(pk=update.pk, below=update.below)
        if not is_same or current.first() is None:
            # Another worker has done it, or a document has just been published again: the next call sees what is new.
            return
        for id in ids:
            _update_document(id, update, pages[id])
        if len(ids) == BATCH:
            current.update(below=ids[-1])
        else:
            current.delete()
            Sender.objects.filter(pk=update.sender_id, forgotten_at__isnull=False).delete()
        failpoints.hit("sender_update.before_commit")


def _left(update: SenderUpdate) -> Any:
    if update.applied_by and not update.sender.forgotten_at:
        return senders.possible_documents(update.sender).filter(pk__lt=update.below).order_by("-id")
    documents = Document.objects.filter(sender=update.sender_id, pk__lt=update.below).order_by("-id")
    if update.sender.forgotten_at:
        return documents
    given = DocumentField.objects.filter(source=SENDER, document__sender=update.sender_id)
    return documents.filter(pk__in=given.values("document"))


def _update_document(id: int, update: SenderUpdate, pages: Sequence[Mapping[str, Any]]) -> None:
    document = Document.objects.filter(pk=id).values("workspace_id", "type", "sender_id").get()
    if document["sender_id"] is None:
        # It arrived before anything was known about its sender.
        if senders.printed_on(document["workspace_id"], pages) != update.sender_id:
            return
        Document.objects.filter(pk=id).update(sender=update.sender_id)
    spec = types.of_workspace(document["workspace_id"]).get(document["type"])
    values = [] if update.sender.forgotten_at else learning.values_for(update.sender_id, pages)
    if not update.applied_by:
        before = DocumentField.objects.filter(document=id, source=SENDER).values_list("name", flat=True)
        values = [value for value in values if value["name"] in set(before)]
    fields.replace(id, SENDER, values, spec)
    if update.sender.forgotten_at:
        Document.objects.filter(pk=id).update(sender=None)
