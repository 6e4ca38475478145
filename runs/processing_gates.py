"""Gates of runs that wait until their document is processed: see `runs/gates.py` for the other gates.

A change of a document's status sets the gates of its queued runs in the same transaction. A run that was submitted at
that moment may be missed; `mend` finds it. The claim checks the document's status itself.
"""

from collections.abc import Iterator

from django.db import connection, transaction
from django.db.models import QuerySet

from documents.models import Document, DocumentProcessingJob
from runs import gates
from runs.gates import BATCH
from runs.models import IN_TURN, Run
from work import failpoints, wakeups

# Most documents that one call of `mend` looks at, because each is its own transaction.
DOCUMENTS = 200


def follow(document_id: int, status: str) -> int:
    """Set the gates of a document's queued runs to what its status asks for. Return how many runs were changed.

    Call this in the transaction that has changed the status, or that holds the document's row. Runs that another
    transaction has locked are left to `mend`.
    """
    of_document = Run.objects.filter(input_document=document_id, status=Run.Status.QUEUED)
    if status == Document.Status.PROCESSED:
        number = gates.take_turns(_oldest(of_document.filter(gate=Run.Gate.PROCESSING)), Run.Gate.PROCESSING)
    else:
        # Query each gate separately, so that a partial index applies.
        in_turn = _oldest(of_document.filter(gate__in=IN_TURN, waits_for_processing=True))
        if status == Document.Status.PROCESSING:
            number, gate = len(in_turn), Run.Gate.PROCESSING
        else:
            behind = [of_document.filter(gate=each) for each in (Run.Gate.PROCESSING, Run.Gate.BUILD)]
            for runs in behind:
                in_turn += _oldest(runs.filter(waits_for_processing=True))
            number, gate = len(in_turn), Run.Gate.FAILED
        if number:
            Run.objects.filter(pk__in=in_turn, status=Run.Status.QUEUED).update(gate=gate)
            # A run that does not wait for the document may be the next one now.
            gates.open_document(document_id)
    if number:
        wakeups.ring("run")
    failpoints.hit("run.document_followed")
    return number


def mend(_owner: str = "") -> int:
    """Set gates that were missed. Return how many runs were changed."""
    return sum(map(_mend, _documents_to_mend()))


def failed(most: int) -> list[tuple[int, int]]:
    """Return queued runs whose document could not be processed, as (id, document id)."""
    doomed = Run.objects.filter(status=Run.Status.QUEUED, gate=Run.Gate.FAILED)
    return list(doomed.order_by("input_document_id", "id").values_list("pk", "input_document_id")[:most])


def problem_of(document_id: int) -> str:
    """Say in a sentence that the document could not be processed, and why."""
    name = Document.objects.values_list("name", flat=True).get(pk=document_id)
    error = DocumentProcessingJob.objects.last_error(document_id)
    return f"Document {document_id} ({name}) could not be processed{f': {error}' if error else '.'}"


@transaction.atomic
def _mend(document_id: int) -> int:
    # Hold the row, so that the status cannot change between this look and the gates.
    skip_locked = connection.features.has_select_for_update_skip_locked
    row = Document.objects.select_for_update(skip_locked=skip_locked).filter(pk=document_id)
    status = row.values_list("status", flat=True).first()
    return follow(document_id, status) if status else 0


def _documents_to_mend() -> Iterator[int]:
    """Return documents whose status and whose runs' gates do not fit."""
    queued = Run.objects.order_by().filter(status=Run.Status.QUEUED)
    ended = [Document.Status.PROCESSED, Document.Status.FAILED]
    waiting = queued.filter(gate=Run.Gate.PROCESSING, input_document__status__in=ended)
    # Check only the runs that claims meet first; the other runs follow once these are gone.
    first = queued.filter(gate=Run.Gate.OPEN).order_by("created_at", "id").values_list("pk", flat=True)[:BATCH]
    unready = [Document.Status.PROCESSING, Document.Status.FAILED]
    open_by_mistake = Run.objects.filter(
        pk__in=list(first), waits_for_processing=True, input_document__status__in=unready
    )
    documents = [runs.values_list("input_document_id", flat=True).distinct() for runs in (waiting, open_by_mistake)]
    return iter({id for ids in documents for id in ids[:DOCUMENTS]})


def _oldest(runs: "QuerySet[Run]") -> list[int]:
    skip_locked = connection.features.has_select_for_update_skip_locked
    oldest = runs.order_by("created_at", "id").select_for_update(skip_locked=skip_locked)
    return list(oldest.values_list("pk", flat=True)[:BATCH])
