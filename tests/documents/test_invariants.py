import pytest

from documents import fulltext
from documents.models import Document, DocumentChunk, DocumentProcessingJob
from tests.breaches import breaches, execute, much_has_happened, plant, plant_copy, unguard
from tests.factories import (
    DocumentChunkFactory,
    DocumentFactory,
    DocumentFieldFactory,
    FieldCorrectionFactory,
    JobFactory,
    LessonEvidenceFactory,
    SenderFactory,
    WorkspaceFactory,
    write,
)
from work import clock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def world(db):
    much_has_happened()


@pytest.mark.parametrize("status", ["PENDING", "PROCESSING"])
def test_two_live_jobs(status):
    job = JobFactory(status=status)
    unguard(DocumentProcessingJob)
    plant_copy(job, id=999_999)

    assert breaches("a_document_has_at_most_one_live_job") == [("document", job.document_id)]


@pytest.mark.parametrize(
    ("status", "columns"),
    [
        ("PENDING", {"attempts": 4}),
        ("FAILED", {"error_log": ""}),
        ("COMPLETED", {"completed_at": None}),
        ("PROCESSING", {"completed_at": clock.now()}),
    ],
)
def test_a_job_that_does_not_account_for_itself(status, columns):
    job = JobFactory(status=status)
    unguard(DocumentProcessingJob)
    plant(job, **columns)

    assert breaches("a_processing_job_accounts_for_itself") == [("job", job.pk)]


@pytest.mark.parametrize("status", ["NEW", "READY", "ERROR"])
def test_a_completed_job_with_something_left_to_do(status):
    job = DocumentProcessingJob.objects.filter(status="COMPLETED", stages__status="DONE").first()
    stage = job.stages.first()
    unguard(type(stage))
    plant(stage, status=status)

    assert breaches("a_completed_job_has_done_all_its_stages") == [("job", job.pk)]


@pytest.mark.parametrize(
    ("status", "lie"),
    [
        ("processing", "processed"),
        ("processing", "failed"),
        ("processed", "processing"),
        ("processed", "failed"),
    ],
)
def test_a_document_that_stands_elsewhere(status, lie):
    document = Document.objects.filter(status=status).first()
    plant(document, status=lie)

    assert breaches("a_document_stands_where_its_last_job_stands") == [("document", document.pk)]


def test_a_document_that_waits_for_no_job():
    document = Document.objects.filter(status="processing").first()
    document.jobs.all().delete()

    assert breaches("a_document_stands_where_its_last_job_stands") == [("document", document.pk)]


@pytest.mark.parametrize("columns", [{"file": "documents/1"}, {"text": "Dear"}, {"embedding": b"1234"}])
def test_a_purged_document_that_holds_something(columns):
    document = Document.objects.get(purged_at__isnull=False)
    unguard(Document)
    plant(document, **columns)

    assert breaches("a_purged_document_holds_nothing") == [("document", document.pk)]


@pytest.mark.parametrize("factory", [DocumentChunkFactory, DocumentFieldFactory, FieldCorrectionFactory])
def test_a_purged_document_with_something_beside_it(factory):
    document = Document.objects.get(purged_at__isnull=False)
    factory(document=document)

    assert breaches("a_purged_document_holds_nothing") == [("document", document.pk)]


def test_a_chunk_that_names_another_workspace():
    chunk = DocumentChunkFactory()
    DocumentChunk.objects.update(workspace=WorkspaceFactory())

    assert breaches("a_chunk_is_in_the_workspace_of_its_document") == [("document", chunk.document_id)]


def test_a_document_of_a_sender_of_another_workspace():
    own, foreign = DocumentFactory(), DocumentFactory(sender=SenderFactory())
    evidence = LessonEvidenceFactory()
    write(own, sender=SenderFactory(workspace=own.workspace))

    found = {("document", foreign.pk), ("document", evidence.document_id)}
    assert set(breaches("what_is_learned_stays_in_its_workspace")) == found


@pytest.mark.only_on("sqlite")
def test_a_chunk_whose_words_cannot_be_looked_up():
    gone_id = DocumentChunkFactory().pk
    execute("DROP TRIGGER IF EXISTS chunk_words_added")
    execute("DROP TRIGGER IF EXISTS chunk_words_removed")
    late = DocumentChunkFactory()
    DocumentChunk.objects.filter(pk=gone_id).delete()

    found = [("document", late.document_id), ("chunk", gone_id)]
    # Without a full-text index nothing can be out of step.
    assert breaches("words_of_every_chunk_can_be_looked_up") == (found if fulltext.has_index() else [])


def test_a_field_without_a_chosen_value():
    field = DocumentFieldFactory(chosen=False)
    DocumentFieldFactory(document=field.document)

    assert breaches("a_field_has_a_chosen_value") == [("document", field.document_id)]
