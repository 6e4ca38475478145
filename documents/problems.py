"""The problems of documents: what is wrong, and who has dismissed it."""

from collections.abc import Iterable

from django.db import transaction

from documents import duplicates, history, reviewing
from documents.choosing import Problem
from documents.models import Document, DocumentProblem
from documents.models.problems import LONGEST_MESSAGE
from work import clock
from work.operations.outcomes import Outcome

# Problems per document. A person could not read more.
MOST = 100
# The codes of problems that follow from a document's fields and its type. The reader finds all others.
OF_FIELDS = frozenset({"field_missing", "field_malformed", duplicates.CODE})


def replace(document_id: int, found: Iterable[Problem] | None, of_fields: Iterable[Problem]) -> None:
    """Store the problems of a document. Problems that are found again keep their dismissal.

    `found` are the problems that the reader found; None keeps the stored ones. The caller must have opened a
    transaction.
    """
    stored = {(row.code, row.field, row.message): row for row in DocumentProblem.objects.filter(document=document_id)}
    current = {_key(problem) for problem in (*(found or ()), *of_fields)}
    if found is None:
        current |= {key for key in stored if key[0] not in OF_FIELDS}
    gone = [row.pk for key, row in stored.items() if key not in current]
    if gone:
        DocumentProblem.objects.filter(pk__in=gone).delete()
    new = sorted(current - stored.keys())[: max(MOST - len(stored) + len(gone), 0)]
    if new:
        DocumentProblem.objects.bulk_create(
            DocumentProblem(document_id=document_id, code=code, field=field, message=message)
            for code, field, message in new
        )


def dismiss(problem: DocumentProblem, *, actor: str) -> Outcome:
    """Say that a problem is none."""
    with transaction.atomic():
        # Lock the document, so that its problems are not replaced meanwhile.
        Document.objects.select_for_update().filter(pk=problem.document_id).values_list("pk", flat=True).first()
        current = DocumentProblem.objects.filter(pk=problem.pk).first()
        if current is None:
            return Outcome.NOT_FOUND
        if current.dismissed_at:
            return Outcome.WAS_DISMISSED
        longest = DocumentProblem._meta.get_field("dismissed_by").max_length
        DocumentProblem.objects.filter(pk=problem.pk).update(dismissed_at=clock.now(), dismissed_by=actor[:longest])
        data = {"code": current.code, "field": current.field}
        history.record_dismissal(problem.document_id, f"Dismissed: {current.message}", data, actor=actor)
        reviewing.update(problem.document_id)
    return Outcome.DISMISSED


def preview_dismissal(problem: DocumentProblem) -> Outcome:
    return Outcome.WAS_DISMISSED if problem.dismissed_at else Outcome.DISMISSED


def _key(problem: Problem) -> tuple[str, str, str]:
    return problem.code[:50], problem.field[:100], problem.message[:LONGEST_MESSAGE]
