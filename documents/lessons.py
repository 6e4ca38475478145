"""What people do with what ADE has learned about a sender: switch it off and on, apply it to past documents, forget it.

Each changes rows only. `documents/sender_updates.py` then updates the documents.
"""

from typing import Any

from django.db import transaction

from documents.models import Sender, SenderIdentity, SenderLesson
from documents.senders import update_documents
from work import clock
from work.operations.outcomes import Outcome

_LONGEST_NAME = 150


def switch_off(row: Sender | SenderLesson, *, actor: str) -> Outcome:
    """Stop using the lessons of a sender, or one lesson. Their values are removed from all documents."""
    off = {"switched_off_at": clock.now(), "switched_off_by": actor[:_LONGEST_NAME]}
    with transaction.atomic():
        if _rows(row).filter(switched_off_at__isnull=True).update(**off):
            update_documents(_sender_id(row))
            return Outcome.SWITCHED_OFF
    return _now(row, preview_off)


def switch_on(row: Sender | SenderLesson, *, actor: str) -> Outcome:
    """Use the lessons again, for new documents. `apply` uses them for past ones."""
    on: dict[str, Any] = {"switched_off_at": None, "switched_off_by": ""}
    if _rows(row).filter(switched_off_at__isnull=False).update(**on):
        return Outcome.SWITCHED_ON
    return _now(row, preview_on)


def apply(sender: Sender, *, actor: str) -> Outcome:
    """Use the lessons of a sender for the documents that are there already."""
    by = actor[:_LONGEST_NAME]
    with transaction.atomic():
        if _rows(sender).filter(switched_off_at__isnull=True).update(applied_at=clock.now(), applied_by=by):
            update_documents(sender.pk, applied_by=by)
            return Outcome.APPLIED
    return _now(sender, preview_apply)


def forget(sender: Sender, *, actor: str) -> Outcome:
    """Delete a sender with all that is known about it, and the values that its lessons gave."""
    with transaction.atomic():
        if _rows(sender).update(forgotten_at=clock.now()):
            # A document that arrives meanwhile has a new sender.
            SenderIdentity.objects.filter(sender=sender.pk).delete()
            SenderLesson.objects.filter(sender=sender.pk).delete()
            update_documents(sender.pk)
            return Outcome.FORGOTTEN
    return Outcome.NOT_FOUND


def preview_off(row: Sender | SenderLesson) -> Outcome:
    return Outcome.IS_OFF if row.switched_off_at else Outcome.SWITCHED_OFF


def preview_on(row: Sender | SenderLesson) -> Outcome:
    return Outcome.SWITCHED_ON if row.switched_off_at else Outcome.IS_ON


def preview_apply(sender: Sender) -> Outcome:
    return Outcome.IS_OFF if sender.switched_off_at else Outcome.APPLIED


def preview_forget(sender: Sender) -> Outcome:
    return Outcome.NOT_FOUND if sender.forgotten_at else Outcome.FORGOTTEN


def _rows(row: Sender | SenderLesson) -> Any:
    """Return the row for an update, unless its sender is being forgotten."""
    if isinstance(row, SenderLesson):
        return SenderLesson.objects.filter(pk=row.pk, sender__forgotten_at__isnull=True)
    return Sender.objects.kept().filter(pk=row.pk)


def _sender_id(row: Sender | SenderLesson) -> int:
    return row.sender_id if isinstance(row, SenderLesson) else row.pk


def _now(row: Sender | SenderLesson, preview: Any) -> Outcome:
    """Return why nothing was changed."""
    current = _rows(row).first()
    outcome: Outcome = preview(current) if current else Outcome.NOT_FOUND
    return outcome
