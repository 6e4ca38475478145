"""The operations that people perform on runs and on the run queue: see `work/operations/previews.py`."""

from collections.abc import Callable

from django.conf import settings

from builds.models import Configuration
from documents.models import Document
from runs import lifecycle, queue
from runs.lifecycle import RUN_STATES, DocumentFailed, Purged, QueueFull
from runs.models import Queue, Run
from work.operations.outcomes import Outcome, of_cancel, preview_cancel, preview_pause, preview_resume
from work.operations.previews import Operation, OperationResult


def cancel(run: Run, *, actor: str, reason: str = "") -> Outcome:
    return of_cancel(RUN_STATES, run.status, lifecycle.cancel(run, actor=actor, reason=reason))


def run_again(run: Run, *, actor: str) -> Outcome | OperationResult:
    return _made(Outcome.MADE, lambda: lifecycle.run_again(run, actor=actor))


def preview_run_again(run: Run) -> Outcome:
    return _expected(Outcome.MADE, run.input_document, waits=run.waits_for_processing)


def run_over(configuration: Configuration) -> Operation:
    """Return the operation on documents that runs this configuration over them."""

    def submit(document: Document, *, actor: str) -> Outcome | OperationResult:
        return _made(Outcome.STARTED, lambda: lifecycle.submit(configuration, document, actor=actor))

    def predict(document: Document) -> Outcome:
        return _expected(Outcome.STARTED, document, waits=True)

    return Operation("run", "Run a configuration", submit, predict, capacity=free_places)


def pause_queue(row: Queue, *, actor: str, reason: str = "") -> Outcome:
    return Outcome.PAUSED if queue.pause(actor=actor, reason=reason) else Outcome.WAS_PAUSED


def resume_queue(row: Queue, *, actor: str) -> Outcome:
    return Outcome.RESUMED if queue.resume(actor=actor) else Outcome.NOT_PAUSED


def free_places() -> int | None:
    """Return how many runs the queue has room for; None if it has no limit."""
    if settings.ADE_QUEUE_SIZE is None:
        return None
    # Use one status per query, so that a partial index applies.
    live = sum(Run.objects.filter(status=status).count() for status in (Run.Status.QUEUED, Run.Status.RUNNING))
    return max(0, settings.ADE_QUEUE_SIZE - live)


def _made(outcome: Outcome, make: Callable[[], Run]) -> Outcome | OperationResult:
    try:
        return OperationResult(outcome, make())
    except QueueFull:
        return Outcome.NO_PLACE
    except Purged:
        return Outcome.PURGED
    except DocumentFailed:
        return Outcome.NOT_PROCESSED


def _expected(outcome: Outcome, document: Document, *, waits: bool) -> Outcome:
    if document.purged_at:
        return Outcome.PURGED
    return Outcome.NOT_PROCESSED if waits and document.status == Document.Status.FAILED else outcome


CANCEL = Operation("cancel", "Cancel", cancel, lambda run: preview_cancel(RUN_STATES, run.status), takes_reason=True)
RUN_AGAIN = Operation("again", "Run again", run_again, preview_run_again, capacity=free_places)
PAUSE_QUEUE = Operation("pause", "Pause", pause_queue, preview_pause, takes_reason=True)
RESUME_QUEUE = Operation("resume", "Resume", resume_queue, preview_resume)
