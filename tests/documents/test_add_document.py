import pytest
from django.db import IntegrityError, transaction

from documents import lifecycle
from documents.models import Document
from tests.factories import DocumentFactory, JobFactory, bring_to, columns_of, events_of, told
from work.models import Event

VALUES = {
    "name": "invoice.pdf",
    "file": "documents/1",
    "content_type": "application/pdf",
    "size_bytes": 1000,
    "sha256": "0" * 64,
}

pytestmark = pytest.mark.django_db


def test_a_stored_file_becomes_a_document_with_its_job(workspace, settings):
    document = lifecycle.add_document(workspace, VALUES, actor="olga")

    assert (document.workspace, document.name, document.status) == (workspace, "invoice.pdf", "processing")
    job = document.jobs.get()
    assert (job.status, job.attempts, job.max_attempts) == ("PENDING", 0, settings.ADE_DOCUMENT_ATTEMPTS)
    for row, kind, status in ((document, "DOCUMENT_ADDED", "processing"), (job, "JOB_QUEUED", "PENDING")):
        event = events_of(row).get()
        assert (event.kind, event.to_status, event.actor, event.sequence) == (kind, status, "olga", 1)


def test_a_job_is_due_at_once(workspace, w1):
    document = lifecycle.add_document(workspace, VALUES)

    assert lifecycle.begin_next_job(w1).values == {"document_id": document.pk}


def test_there_is_no_document_without_its_job(workspace, monkeypatch):
    create = lifecycle.lifecycle.create

    def fails_for_jobs(states, values, **options):
        return create(
            states, values | ({"attempts": 9, "max_attempts": 3} if states is lifecycle.JOB_STATES else {}), **options
        )

    monkeypatch.setattr(lifecycle.lifecycle, "create", fails_for_jobs)

    with pytest.raises(IntegrityError), transaction.atomic():
        lifecycle.add_document(workspace, VALUES)

    assert not Document.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize("status", ["processed", "failed"])
def test_a_document_that_has_ended_is_processed_again_by_a_new_job(status):
    document = DocumentFactory(status=status)
    old = JobFactory(document=document, status="COMPLETED")
    before = columns_of(old)

    job_id = lifecycle.reprocess(document, actor="olga")

    document.refresh_from_db()
    assert document.status == "processing"
    assert set(document.jobs.values_list("pk", "status")) == {(old.pk, "COMPLETED"), (job_id, "PENDING")}
    assert columns_of(old) == before
    event = events_of(document).last()
    assert (event.kind, event.from_status, event.to_status) == ("DOCUMENT_REOPENED", status, "processing")
    assert event.actor == "olga"


def test_a_document_under_way_is_not_processed_again():
    document = JobFactory().document
    before = columns_of(document)

    assert lifecycle.reprocess(document, actor="olga") is None

    assert columns_of(document) == before
    assert document.jobs.count() == 1


def test_a_document_has_one_live_job():
    job = JobFactory(status="PROCESSING")

    with pytest.raises(IntegrityError), transaction.atomic():
        JobFactory(document=job.document)

    bring_to(job, "COMPLETED")
    assert JobFactory(document=job.document).status == "PENDING"
    assert told(job)[-1] == "JOB_COMPLETED"
