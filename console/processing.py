"""The progress of a document: its last processing job and the stages of that."""

from collections.abc import Sequence
from dataclasses import dataclass

from console import formatting
from documents.lifecycle import ORDER
from documents.models import Document, DocumentProcessingJob, Stage
from documents.retention import purged_on
from work import clock

MOST_STAGES = 40
LONGEST_LOG = 4000
# Stages that are running or failed are shown first if there are too many; the displayed order is the order of the work.
_FIRST = ("ERROR", "RUNNING")


@dataclass(frozen=True)
class Processing:
    job: DocumentProcessingJob
    stages: Sequence[Stage]
    done: int
    all: int

    @property
    def left_out(self) -> int:
        return self.all - len(self.stages)

    @property
    def error_log(self) -> str:
        """Return the end of the log, because the last attempt is the most relevant."""
        return self.job.error_log[-LONGEST_LOG:].strip()


def processing_of(document: Document) -> Processing | None:
    """Return the last processing job, or None if the document never had one."""
    job = DocumentProcessingJob.objects.filter(document=document.pk).order_by("-pk").first()
    if job is None:
        return None
    stages = sorted(Stage.objects.filter(job=job), key=_place)
    done = sum(stage.status == "DONE" for stage in stages)
    shown = sorted(stages, key=lambda stage: stage.status not in _FIRST)[:MOST_STAGES]
    return Processing(job, sorted(shown, key=_place), done, len(stages))


def said_of(document: Document, found: Processing | None) -> str:
    """Return the rest of the sentence that starts with the status."""
    if document.purged_at:
        return f"and {purged_on(document)}. Only this row and its history remain."
    if document.status == Document.Status.PROCESSING:
        since = formatting.length(
            (clock.now() - (found.job.created_at if found else document.created_at)).total_seconds()
        )
        return f"for {since}.{_parts(found)}"
    pages = f"{formatting.number(document.pages, 'page')}, " if document.pages is not None else ""
    if found is None or found.job.finished_at is None:
        return f"{pages}{formatting.ago(document.created_at)}."
    return f"{pages}in {formatting.length(formatting.seconds_of(found.job))}, {formatting.ago(found.job.finished_at)}."


def _place(stage: Stage) -> tuple[int, int]:
    return ORDER.index(stage.name), stage.segment


def _parts(found: Processing | None) -> str:
    return f" {found.done} of {formatting.number(found.all, 'stage')} done." if found and found.all else ""
