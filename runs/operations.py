"""The actions on runs and their queue that people apply to one or many rows: see `work/operations/previews.py`."""

from django.conf import settings

from runs import lifecycle, queue
from runs.lifecycle import RUN_STATES, Purged, QueueFull
from runs.models import Queue, Run
from work.operations.outcomes import Outcome, of_cancel, preview_cancel, preview_pause, preview_resume
from work.operations.previews import Operation, OperationResult


def cancel() -> Operation:
    def cancel_one(run: Run, *, actor: str, reason: str) -> Outcome:
        return of_cancel(RUN_STATES, run.status, lifecycle.cancel(run, actor=actor, reason=reason))

    return Operation(cancel_one, lambda run: preview_cancel(RUN_STATES, run.status), takes_reason=True)


def again() -> Operation:
    """Its preview counts the free places of the queue down, one per run."""
    places = None
    if settings.ADE_QUEUE_SIZE is not None:
        # Use one status per query, so that a partial index applies.
        statuses = (Run.Status.QUEUED, Run.Status.RUNNING)
        live = sum(Run.objects.filter(status=status).count() for status in statuses)
        places = iter(range(max(0, settings.ADE_QUEUE_SIZE - live)))

    def run_one_again(run: Run, *, actor: str) -> Outcome | OperationResult:
        try:
            return OperationResult(Outcome.MADE, lifecycle.run_again(run, actor=actor))
        except QueueFull:
            return Outcome.NO_PLACE
        except Purged:
            return Outcome.PURGED

    def preview(run: Run) -> Outcome:
        if run.input_document.purged_at:
            return Outcome.PURGED
        has_place = places is None or next(places, None) is not None
        return Outcome.MADE if has_place else Outcome.NO_PLACE

    return Operation(run_one_again, preview)


def pause_queue() -> Operation:
    def pause(row: Queue, *, actor: str, reason: str) -> Outcome:
        return Outcome.PAUSED if queue.pause(actor=actor, reason=reason) else Outcome.WAS_PAUSED

    return Operation(pause, preview_pause, takes_reason=True)


def resume_queue() -> Operation:
    def resume(row: Queue, *, actor: str) -> Outcome:
        return Outcome.RESUMED if queue.resume(actor=actor) else Outcome.NOT_PAUSED

    return Operation(resume, preview_resume)
