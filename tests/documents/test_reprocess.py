"""Processing again creates a new job next to the old ones; published content stays until there is new content."""

from datetime import timedelta

import pytest
from django.core.files.storage import default_storage

from documents import embedding, lifecycle, orchestrator, reprocessing
from documents.models import Document, DocumentChunk, DocumentProcessingJob
from tests.breaches import assert_all_hold
from tests.documents.test_processing import LETTER, add, process, until_ready
from tests.documents.test_processing import slot as slot
from tests.documents.test_processing import storage as storage
from tests.factories import W1, DocumentFactory, JobFactory, WorkspaceFactory, events_of, told, write
from tests.writers import WRITERS
from work import clock
from work import lifecycle as kernel
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.django_db


def contents(document):
    document = Document.objects.get(pk=document.pk)
    chunks = document.chunks.order_by("position").values_list("position", "text", "embedding_model")
    return document.text, document.pages, bytes(document.embedding), list(chunks)


def replace_file(document, data):
    with default_storage.open(document.file.name, "wb") as file:
        file.write(data)


def test_the_history_of_the_old_job_stays(slot):
    document = add(LETTER)
    process(slot)
    old = document.jobs.get()
    history, of_document = told(old), told(document)

    job_id = lifecycle.reprocess(document, actor="olga")
    process(slot)

    assert list(document.jobs.order_by("id").values_list("pk", "status")) == [
        (old.pk, "COMPLETED"),
        (job_id, "COMPLETED"),
    ]
    assert told(old) == history
    assert told(document) == [*of_document, "DOCUMENT_REOPENED", "DOCUMENT_PROCESSED"]
    assert events_of(document).get(kind="DOCUMENT_REOPENED").actor == "olga"
    assert_all_hold()


def test_what_was_published_stays_until_there_is_something_new(slot):
    document = add(LETTER)
    process(slot)
    before = contents(document)
    replace_file(document, b"Dear Mr Other,\n\npears this time.\n")
    lifecycle.reprocess(document, actor="olga")

    for name in lifecycle.ORDER:
        until_ready(slot, document, name)
        assert contents(document) == before, name
    process(slot)

    text, _, _, chunks = contents(document)
    assert "pears this time" in text
    assert "apples" not in text
    assert [chunk[1] for chunk in chunks] == [DocumentChunk.objects.get().text]


def test_what_was_published_stays_when_it_fails_and_the_history_says_so(slot):
    document = add(LETTER)
    process(slot)
    before = contents(document)
    default_storage.delete(document.file.name)

    lifecycle.reprocess(document, actor="olga")
    process(slot)

    document.refresh_from_db()
    assert document.status == "failed"
    assert contents(document) == before
    event = events_of(document).last()
    assert event.kind == "DOCUMENT_FAILED"
    assert event.message.endswith("; the results of the earlier processing are still available.")
    assert_all_hold()


def test_a_first_failure_does_not_speak_of_an_earlier_one(slot):
    document = add(b"%PDF-1.7 and nothing else", "application/pdf", "broken.pdf")

    process(slot)

    assert "before" not in events_of(document).last().message


@pytest.mark.parametrize(
    ("status", "outcome"), [("processed", Outcome.MADE), ("failed", Outcome.MADE), (None, Outcome.UNDER_WAY)]
)
def test_what_becomes_of_a_wish_is_foreseen(status, outcome):
    document = DocumentFactory(status=status)

    assert reprocessing.preview(document) == outcome
    assert reprocessing.reprocess(document, actor="olga", in_bulk=False) == outcome


def test_what_was_purged_is_not_processed_again():
    document = write(DocumentFactory(status="processed"), file="", purged_at=clock.now())

    assert reprocessing.preview(document) == Outcome.PURGED
    assert reprocessing.reprocess(document, actor="olga", in_bulk=False) == Outcome.PURGED
    assert not document.jobs.exists()


# A whole workspace


def test_the_documents_of_a_workspace_are_chosen_by_what_became_of_them(workspace):
    processed, failed = (DocumentFactory(workspace=workspace, status=status) for status in ("processed", "failed"))
    DocumentFactory(workspace=workspace)
    DocumentFactory(status="processed")
    write(DocumentFactory(workspace=workspace, status="failed"), file="", purged_at=clock.now())

    def chosen(status=None, *, is_of_another_model=False):
        return list(reprocessing.select(workspace, status, is_of_another_model=is_of_another_model))

    assert chosen() == [processed, failed]
    assert (chosen("processed"), chosen("failed")) == ([processed], [failed])
    write(processed, embedding_model=embedding.model())
    assert chosen(is_of_another_model=True) == [failed]
    write(processed, embedding_model="model-of-yesterday")
    assert chosen(is_of_another_model=True) == [processed, failed]


# In bulk


def test_what_comes_in_is_not_held_up_by_what_is_processed_again_in_bulk(settings):
    settings.ADE_STAGE_CONCURRENCY = 1
    many = [DocumentFactory(status="processed") for _ in range(20)]
    for document in many:
        lifecycle.reprocess(document, actor="olga", in_bulk=True)
    orchestrator.orchestrate(W1)
    under_way = set(DocumentProcessingJob.objects.filter(status="PROCESSING"))
    assert len(under_way) < len(many)
    fresh = lifecycle.add_document(WorkspaceFactory(), {"name": "new.txt", "size_bytes": 1, "sha256": "0" * 64})

    done = 0
    while Document.objects.get(pk=fresh.pk).status == "processing":
        orchestrator.orchestrate(W1)
        lifecycle.finish_stage(lifecycle.claim_stage(W1))
        orchestrator.orchestrate(W1)
        done += 1

    # At most the stages of the jobs that had begun, and the new document's own three.
    assert done <= 3 * (len(under_way) + 1)
    assert DocumentProcessingJob.objects.filter(document__in=many, status="PENDING").count() >= 20 - 2 * len(under_way)


@pytest.mark.parametrize("writer", WRITERS)
def test_one_alone_goes_before_many_and_many_go_when_nothing_else_is_due(w1, writer, monkeypatch):
    monkeypatch.setattr(kernel, "_writer", lambda: writer)
    first, second, alone = (DocumentFactory(status="processed") for _ in range(3))
    bulk = [lifecycle.reprocess(document, actor="olga", in_bulk=True) for document in (first, second)]
    single = lifecycle.reprocess(alone, actor="olga")
    later = JobFactory(next_attempt_at=clock.now() + timedelta(hours=1))

    begun = [claim.id for claim in iter(lambda: lifecycle.begin_next_job(w1), None)]

    assert begun == [single, *bulk]
    later.refresh_from_db()
    assert later.status == "PENDING"
