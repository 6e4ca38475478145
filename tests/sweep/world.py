"""Some of everything for a process to die in, and a worker that brings all of it to an end afterwards."""

from datetime import timedelta
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import models

from builds import lifecycle as builds
from documents import lifecycle as documents
from documents import retention
from documents.models import DocumentProcessingJob
from runs import gates
from runs import lifecycle as runs
from runs.models import Run
from tests.factories import (
    MOVES,
    W2,
    BuildFactory,
    ConfigurationFactory,
    DocumentChunkFactory,
    DocumentFactory,
    RunFactory,
    WorkspaceFactory,
    age,
    expire_lease,
    write,
)
from work import clock, recovery
from work.kinds import all_kinds
from work.models import Work

RETENTION_DAYS = 30


def create():
    """Runs wait for documents and for a build, one has lost its worker, and a document is new."""
    workspace = WorkspaceFactory()
    ready, unready = (ConfigurationFactory(workspace=workspace, name=name) for name in ("ready", "unready"))
    BuildFactory(configuration=ready, status="ready")
    papers = [DocumentFactory(workspace=workspace, name=name) for name in ("contract.pdf", "letter.pdf", "lost.pdf")]
    contract, letter, lost = papers
    expire_lease(RunFactory(configuration=ready, input_document=lost, status="running", owner="w0@here:1:gone"))
    runs.submit_many(ready, [contract, contract, letter], actor="olga")
    runs.submit(unready, letter, actor="olga")
    values = {"content_type": "application/pdf", "size_bytes": 1, "sha256": "0" * 64}
    documents.add_document(workspace, {"name": "new.pdf", "file": "new", **values})
    _create_what_is_due_to_be_purged(workspace)


def _create_what_is_due_to_be_purged(workspace):
    for name in ("first", "second"):
        file = default_storage.save(f"documents/2024/01/{uuid4().hex}", ContentFile(b"Dear Olga"))
        old = DocumentFactory(workspace=workspace, name=name, status="processed", file=file)
        DocumentChunkFactory(document=old)
        age(write(old, text="Dear Olga"), (RETENTION_DAYS + 1) * 24 * 3600)
    write(workspace, document_retention_days=RETENTION_DAYS)


def let_time_pass():
    """All leases run out, and what waits to be tried again is due."""
    past = clock.now() - timedelta(seconds=1)
    for model in MOVES:
        if issubclass(model, Work) and model.CLAIMED:
            models.QuerySet(model).filter(status=model.CLAIMED).update(lease_expires_at=past)
    DocumentProcessingJob.objects.filter(status="PENDING").update(next_attempt_at=past)


def finish_everything():
    for _ in range(20):
        let_time_pass()
        recovery.rescue_expired(all_kinds(), W2)
        while claim := builds.claim_next_build(W2):
            builds.succeed(claim)
        runs.heed_builds(W2)
        gates.open_forgotten()
        while claim := runs.claim_next_run(W2):
            runs.succeed(claim)
        finish_documents()
        retention.purge_due(W2)
        if not (Run.objects.live().exists() or DocumentProcessingJob.objects.live().exists()):
            return


def finish_documents():
    advance_documents()
    while claim := documents.claim_stage(W2):
        documents.finish_stage(claim)
    settle_documents()


def advance_documents():
    while documents.begin_next_job(W2):
        pass
    for job in DocumentProcessingJob.objects.filter(status="PROCESSING"):
        documents.plan(job.pk, 2, actor=W2)
        documents.advance(job.pk, actor=W2)


def settle_documents():
    for job in DocumentProcessingJob.objects.filter(status="PROCESSING"):
        documents.settle(job, actor=W2)
