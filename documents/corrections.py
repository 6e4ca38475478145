"""Corrects fields. The latest correction of a field applies; the document's history lists all corrections."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from documents import duplicates, fields, history, learning, reviewing
from documents.fields import LONGEST_NAME, LONGEST_VALUE, clean_name, clean_value
from documents.models import Document, DocumentField, FieldCorrection
from work import clock

# A value in a message of the history is cut to this many characters.
_SHOWN = 200


class InvalidCorrection(Exception):
    """The correction is invalid; the message says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class CorrectionResult:
    name: str
    # A `machine_value` of None means that no machine found the field; a `before` of None means that it had not been
    # corrected.
    machine_value: str | None
    before: str | None
    value: str

    @property
    def is_confirmed(self) -> bool:
        return self.value == self.machine_value

    def __str__(self) -> str:
        return sentence(self.name, self.machine_value, self.before, self.value)


def correct(document_id: int, name: str, value: str, *, actor: str) -> CorrectionResult | None:
    """Store a person's value for a field, even if no machine found that field.

    If the person's value equals the machine's value, the field is confirmed.

    Return None if there is no such document. Raises InvalidCorrection if the correction is invalid.
    """
    name, value = clean_name(name), clean_value(value)
    if not name or len(name) > LONGEST_NAME:
        problem = f"not {len(name)}" if name else "but this one is empty"
        message = f"The name of a field must have 1 to {LONGEST_NAME} characters, {problem}. Choose another name."
        raise InvalidCorrection("bad_name", message)
    if len(value) > LONGEST_VALUE:
        message = f"The value must have at most {LONGEST_VALUE:,} characters, not {len(value):,}. Shorten it."
        raise InvalidCorrection("too_long", message)
    with transaction.atomic():
        if not lock_kept(document_id, "fields"):
            return None
        result = CorrectionResult(name, _machine_value(document_id, name), _correction(document_id, name), value)
        FieldCorrection.objects.update_or_create(
            document_id=document_id,
            name=name,
            defaults={
                "value": value,
                "corrected_by": actor[: FieldCorrection._meta.get_field("corrected_by").max_length],
                "corrected_at": clock.now(),
                # The periodic task learns from it.
                "learned_at": None,
            },
        )
        data = {"name": name, "machine_value": result.machine_value, "before": result.before, "value": value}
        history.record_correction(document_id, str(result), data, actor=actor)
        _judge(document_id, name)
    return result


def withdraw(document_id: int, name: str, *, actor: str) -> bool:
    """Remove a correction, so that the machine's value applies again. Return False if there was no correction."""
    name = clean_name(name)
    with transaction.atomic():
        if lock(document_id) is None or (before := _correction(document_id, name)) is None:
            return False
        FieldCorrection.objects.filter(document=document_id, name=name).delete()
        learning.unlearn(document_id, name)
        machine_value = _machine_value(document_id, name)
        message = f"Withdrew the correction of {name}: from {quote(before)} back to {quote(machine_value)}."
        data = {"name": name, "machine_value": machine_value, "before": before, "value": None}
        history.record_withdrawal(document_id, message, data, actor=actor)
        _judge(document_id, name)
    return True


def sentence(what: object, machine: str | None, before: str | None, value: str) -> str:
    """Say what a correction has done. `before` is the earlier correction, if there was one."""
    if value == machine:
        return f"Confirmed {what}: {quote(value)}."
    return f"Corrected {what} from {quote(machine if before is None else before)} to {quote(value)}."


def lock(document_id: int) -> Any:
    """Lock the document, so that it is never corrected and published at the same time. Return None if there is none."""
    return Document.objects.select_for_update().filter(pk=document_id).values("purged_at").first()


def lock_kept(document_id: int, what: str) -> bool:
    """Lock a document for a correction. Return False if there is none. Raises InvalidCorrection if it was purged."""
    document = lock(document_id)
    if document is not None and document["purged_at"] is not None:
        message = f"Document {document_id} has been purged, so its {what} cannot be corrected."
        raise InvalidCorrection("purged", message)
    return document is not None


def quote(value: str | None) -> str:
    if not value:
        return "nothing"
    line = " ".join(value.split())
    return f"“{line if len(line) <= _SHOWN else f'{line[: _SHOWN - 1]}…'}”"


def _judge(document_id: int, name: str) -> None:
    if name in duplicates.NAMES:
        fields.judge(document_id)
    else:
        reviewing.update(document_id)


def _machine_value(document_id: int, name: str) -> str | None:
    chosen = DocumentField.objects.chosen().filter(document=document_id, name=name)
    return chosen.values_list("value", flat=True).first()


def _correction(document_id: int, name: str) -> str | None:
    return FieldCorrection.objects.filter(document=document_id, name=name).values_list("value", flat=True).first()
