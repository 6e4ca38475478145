"""Processing jobs, chunks and the history of a document."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import caller_of
from api.explanations import ExplanationOut
from api.frame import Out, empty_to_null, responses
from api.histories import History, SubjectEventOut, history_of
from api.pages import Listing, Page, page
from documents import why
from documents.lifecycle import DOCUMENT_STATES
from documents.models import Document, DocumentChunk, DocumentProcessingJob

routes = Router(tags=["documents"])


class InOrder(Listing):
    order: Annotated[Literal["-id", "id"], Field(description="from the end (-id) or from the start (id)")] = "id"


class ChunkOut(Out):
    id: int
    position: int
    page: int | None
    text: str


class StageOut(Out):
    id: int
    name: str
    segment: int
    status: str
    losses: int
    failure_type: str | None
    error_message: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ProcessingJobOut(Out):
    id: int
    status: str
    attempts: int
    max_attempts: int
    next_attempt_at: datetime
    failure_type: str | None
    error_message: str | None
    error_log: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stages: list[StageOut]


@routes.get("/documents/{id:id}/chunks", response=responses({200: Page[ChunkOut]}))
def list_chunks(request: HttpRequest, id: int, listing: Query[InOrder]) -> dict[str, Any]:
    document = caller_of(request).find(Document, id)
    rows = DocumentChunk.objects.filter(document=document).defer("embedding", "words")
    return page(rows, listing, ChunkOut.of)


@routes.get("/documents/{id:id}/jobs", response=responses({200: Page[ProcessingJobOut]}))
def list_processing_jobs(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    """List the processing jobs of a document, with their stages."""
    document = caller_of(request).find(Document, id)
    rows = DocumentProcessingJob.objects.filter(document=document).prefetch_related("stages")
    return page(rows, listing, _job_of)


@routes.get("/documents/{id:id}/events", response=responses({200: Page[SubjectEventOut]}))
def list_document_events(request: HttpRequest, id: int, listing: Query[History]) -> dict[str, Any]:
    return history_of(DOCUMENT_STATES.kind, caller_of(request).find(Document, id).pk, listing)


@routes.get("/documents/{id:id}/why", response=responses({200: ExplanationOut}))
def explain_document(request: HttpRequest, id: int) -> dict[str, Any]:
    """Explain why a document has not been processed yet."""
    return why.explain(caller_of(request).find(Document, id)).to_json()


def _job_of(job: DocumentProcessingJob) -> dict[str, Any]:
    stages = sorted(job.stages.all(), key=lambda stage: stage.pk)
    values = ProcessingJobOut.of(job, stages=[empty_to_null(StageOut.of(stage)) for stage in stages])
    return empty_to_null(values) | {"error_log": job.error_log}
