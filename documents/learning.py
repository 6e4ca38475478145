"""Learns from corrections about the sender of a document, and gives values for the sender's next documents.

A correction that is stored waits with `learned_at` empty, so that learning survives the worker that does it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef

from ade_understanding.learning.lessons import document_of, find, is_same, learn, without_wrong_ways
from ade_understanding.vocabulary import FIELDS
from documents import senders, words
from documents.choosing import SENDER
from documents.models import Document, DocumentField, FieldCorrection, LessonEvidence, Sender, SenderLesson
from work import clock, failpoints

# Corrections per call of the task.
BATCH = 20
# One confirmation makes a value this sure if only a few places of the document disagree. Each further one adds less.
_DOUBT = 0.3
_SURE_QUALITY = 0.6
# Lessons per field. A further one replaces the least reliable.
_MOST_LESSONS = 8

FieldValues = dict[str, Any]

log = structlog.get_logger(__name__)


def learn_due(_owner: str = "") -> int:
    """The periodic task: learn from the next corrections."""
    waiting = FieldCorrection.objects.filter(learned_at__isnull=True).order_by("id")
    for id, document_id, job in waiting.values_list("pk", "document_id", "document__words_job")[:BATCH]:
        try:
            _learn_from(id, document_id, job, words.load(job))
        except Exception:
            # The other corrections do not wait for this one, which is tried again with the next call.
            log.exception("learning.failed", correction=id, document=document_id)
    # Return 0, because no work waits for this: any other number would wake the worker's threads.
    return 0


def values_for(sender_id: int | None, pages: Sequence[Mapping[str, Any]]) -> list[FieldValues]:
    """Return the values that the lessons of a sender find on these pages, one per field: the surest."""
    active = SenderLesson.objects.filter(
        sender=sender_id, switched_off_at=None, sender__switched_off_at=None, sender__forgotten_at=None
    )
    lessons = active.exclude(method={}).counted().order_by("id") if sender_id and pages else []
    document = document_of(pages)
    best: dict[str, FieldValues] = {}
    for lesson in lessons:
        right, wrong = lesson.right, lesson.wrong
        found = find(document, lesson.method)
        if found is None or not right:
            continue
        confidence = confidence_of(right, wrong, found.quality)
        if lesson.field not in best or best[lesson.field]["confidence"] < confidence:
            best[lesson.field] = {
                "name": lesson.field,
                "value": found.value,
                "kind": lesson.method["kind"],
                "confidence": confidence,
                "page": found.page,
                "box": [min(max(float(side), 0.0), 1.0) for side in found.box],
                "source": SENDER,
                "reason": reason_of(lesson.learned_from_id, right, wrong),
            }
    return list(best.values())


def confidence_of(right: int, wrong: int, quality: float = 1.0) -> float:
    """Return how sure a lesson's value is: it grows with each confirmation and falls with each contradiction."""
    by_people = (1 - _DOUBT / (right + 1)) * right / (right + wrong) if right else 0.0
    return round(by_people * min(quality / _SURE_QUALITY, 1.0), 3)


def reason_of(document_id: int | None, right: int, wrong: int) -> str:
    origin = f"Learned from document {document_id}" if document_id else "Learned elsewhere and imported"
    contradicted = f", contradicted {_times(wrong)}" if wrong else ""
    return f"{origin}, confirmed {_times(right)}{contradicted}."


def unlearn(document_id: int, field: str) -> None:
    """Withdraw what the correction of this field taught. The caller must have opened a transaction."""
    evidence = LessonEvidence.objects.filter(document=document_id, lesson__field=field)
    affected = list(evidence.values_list("lesson", flat=True))
    evidence.delete()
    supported = LessonEvidence.objects.filter(lesson=OuterRef("pk"), is_right=True)
    unsupported = list(SenderLesson.objects.filter(~Exists(supported), pk__in=affected, imported_right=0))
    for lesson in unsupported:
        if lesson.method:
            senders.update_documents(lesson.sender_id)
        lesson.delete()


def _learn_from(correction_id: int, document_id: int, job: int | None, pages: Sequence[Mapping[str, Any]]) -> None:
    with transaction.atomic():
        documents = Document.objects.select_for_update().filter(pk=document_id, words_job=job)
        document = documents.values("workspace_id", "sender_id").first()
        waiting = FieldCorrection.objects.filter(pk=correction_id, learned_at__isnull=True)
        correction = waiting.first()
        if document is None or correction is None:
            # The document was published again, or the correction changed: the next call learns from what is there then.
            return
        sender_id = _sender_of(document_id, document, correction)
        active = Sender.objects.filter(switched_off_at=None, forgotten_at=None)
        sender = active.filter(pk=sender_id).first() if sender_id else None
        unlearn(document_id, correction.name)
        if sender and pages:
            _teach(sender, correction, pages)
        waiting.update(learned_at=clock.now())
        failpoints.hit("lesson.before_commit")


def _sender_of(document_id: int, document: Mapping[str, Any], correction: FieldCorrection) -> int | None:
    """Return the sender. Corrections of its VAT id, IBAN or name may show that it is another one."""
    current: int | None = document["sender_id"]
    if correction.name not in senders.FIELDS or not correction.value:
        return current
    # All of them together: each alone might name a different sender.
    named = FieldCorrection.objects.filter(document=document_id, name__in=senders.FIELDS).exclude(value="")
    sender_id = (
        senders.identify(document["workspace_id"], list(named.values("name", "value")), current=current) or current
    )
    if correction.name == "seller" and sender_id:
        Sender.objects.filter(pk=sender_id).update(name=senders.name_of(correction.value))
    if sender_id != current:
        Document.objects.filter(pk=document_id).update(sender=sender_id)
        # The other corrections of this document say something about the new sender.
        FieldCorrection.objects.filter(document=document_id).exclude(pk=correction.pk).update(learned_at=None)
    return sender_id


def _teach(sender: Sender, correction: FieldCorrection, pages: Sequence[Mapping[str, Any]]) -> None:
    document, field, value = document_of(pages), correction.name, correction.value
    lessons = list(SenderLesson.objects.filter(sender=sender, field=field).counted().order_by("id"))
    is_known = False
    for lesson in lessons:
        if not lesson.method:
            continue
        if (found := find(document, lesson.method)) is None:
            continue
        is_right = bool(value) and is_same(found.value, value, lesson.method["kind"])
        _add_evidence(lesson, correction.document_id, is_right=is_right)
        if is_right:
            is_known = True
            better = without_wrong_ways(document, lesson.method, value)
            SenderLesson.objects.filter(pk=lesson.pk).update(method=better)
    if is_known or not value:
        return
    method = learn(document, field, value, _kind(correction)) or {}
    if len(lessons) >= _MOST_LESSONS:
        min(lessons, key=lambda lesson: confidence_of(lesson.right, lesson.wrong)).delete()
    same = next((lesson for lesson in lessons if lesson.method == method), None)
    lesson = same or SenderLesson.objects.create(
        sender=sender, field=field, method=method, learned_from_id=correction.document_id
    )
    _add_evidence(lesson, correction.document_id, is_right=True)


def _add_evidence(lesson: SenderLesson, document_id: int, *, is_right: bool) -> None:
    values = {"is_right": is_right}
    LessonEvidence.objects.update_or_create(lesson=lesson, document_id=document_id, defaults=values)


def _kind(correction: FieldCorrection) -> str:
    kinds = DocumentField.objects.chosen().filter(document=correction.document_id, name=correction.name)
    return kinds.values_list("kind", flat=True).first() or FIELDS.get(correction.name, "text")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
