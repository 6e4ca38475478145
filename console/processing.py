"""The progress of a document: its last processing job and the job's stages."""

from collections.abc import Sequence
from dataclasses import dataclass

from console import formatting
from documents.lifecycle import ORDER
from documents.models import Document, DocumentProcessingJob, Stage
from documents.retention import purged_on

MOST_STAGES = 40
LONGEST_LOG = 4000
# If there are too many stages to show, those with these statuses are chosen first. The shown stages are in the order of
# the work.
_FIRST = (Stage.Status.ERROR, Stage.Status.RUNNING)


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
        """Return only the end of the log, because the last attempt is the most relevant one."""
        return self.job.error_log[-LONGEST_LOG:].strip()


def processing_of(document: Document) -> Processing | None:
    """Return the last processing job, or None if the document never had one."""
    job = DocumentProcessingJob.objects.filter(document=document.pk).order_by("-pk").first()
    if job is None:
        return None
    stages = sorted(Stage.objects.filter(job=job), key=_place)
    done = sum(stage.status == Stage.Status.DONE for stage in stages)
    shown = sorted(stages, key=lambda stage: stage.status not in _FIRST)[:MOST_STAGES]
    return Processing(job, sorted(shown, key=_place), done, len(stages))


def in_words(document: Document, processing: Processing | None) -> str:
    """Return the rest of a sentence that begins with the document's status."""
    if document.purged_at:
        return f"and {purged_on(document)}. Only this row and its history remain."
    if document.status == Document.Status.PROCESSING:
        since = formatting.since(processing.job.created_at if processing else document.created_at)
        if processing and processing.all:
            return f"for {since}. {processing.done} of {formatting.number(processing.all, 'stage')} done."
        return f"for {since}."
    pages = f"{formatting.number(document.pages, 'page')}, " if document.pages is not None else ""
    job = processing.job if processing else None
    if job is None or job.finished_at is None:
        return f"{pages}{formatting.ago(document.created_at)}."
    return f"{pages}in {formatting.length(formatting.seconds_of(job))}, {formatting.ago(job.finished_at)}."


def _place(stage: Stage) -> tuple[int, int]:
    return ORDER.index(stage.name), stage.segment
