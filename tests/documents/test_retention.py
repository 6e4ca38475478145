"""The contents of documents are purged after the retention period of their workspace; the row stays."""

import os
import time
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction

from documents import intake, lifecycle, outputs, periodic, purging, retention, words
from documents.models import (
    CellCorrection,
    Document,
    DocumentChunk,
    DocumentField,
    DocumentTable,
    FieldCorrection,
    TableRows,
)
from runs import lifecycle as runs
from runs.models import Run
from tests.breaches import assert_all_hold
from tests.documents.processing import store_output
from tests.documents.samples import PDF
from tests.factories import (
    W1,
    ArtifactFactory,
    CellCorrectionFactory,
    DocumentChunkFactory,
    DocumentFactory,
    DocumentFieldFactory,
    FieldCorrectionFactory,
    JobFactory,
    RunFactory,
    StageFactory,
    WorkspaceFactory,
    age,
    and_told,
    columns_of,
    events_of,
    force_status,
    table_of,
    told,
    write,
)
from work import clock

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let one call purge all that is due, however slow the machine is. Tests of its time limit set their own."""
    monkeypatch.setattr(retention, "SECONDS_AT_ONCE", 60)


@pytest.fixture
def workspace(workspace):
    return write(workspace, document_retention_days=30)


@pytest.fixture
def old(workspace):
    """Return a function that creates a document of this age with its file and everything that a document may hold."""

    def old(days=31, status="processed", **values):
        key = default_storage.save("documents/2024/01/" + "0" * 32, ContentFile(b"Dear Olga"))
        made = DocumentFactory(workspace=workspace, status=status, file=key, **values)
        DocumentChunkFactory.create_batch(2, document=made, embedding=b"1234")
        DocumentFieldFactory(document=made)
        FieldCorrectionFactory(document=made)
        table_of(made)
        CellCorrectionFactory(document=made)
        age(made, days * DAY)
        columns = {"embedding": b"1234", "embedding_model": "model-1"} if status != "processing" else {}
        return write(made, text="Dear Olga", pages=1, **columns)

    return old


def purged():
    return set(Document.objects.filter(purged_at__isnull=False).values_list("pk", flat=True))


def test_the_contents_go_and_the_row_stays(old):
    document = old(name="letter.pdf")
    before = columns_of(document)

    retention.purge_due(W1)

    after = columns_of(document)
    gone = {"file": "", "text": "", "embedding": None, "embedding_model": ""}
    assert after == and_told(before, document) | gone | {"purged_at": after["purged_at"]}
    assert after["purged_at"] is not None
    for model in (DocumentChunk, DocumentField, FieldCorrection, DocumentTable, TableRows, CellCorrection):
        assert not model.objects.exists()
    assert not default_storage.exists(before["file"])
    assert_all_hold()


def test_the_history_stays_and_says_what_there_was(old):
    document = old()
    before = told(document)

    retention.purge_due(W1)

    assert told(document) == [*before, "DOCUMENT_PURGED"]
    event = events_of(document).last()
    assert (event.actor, event.from_status, event.to_status) == (W1, "", "")
    assert event.message == "Older than 30 days, the retention of its workspace."
    assert event.data == {
        "chunks": 2,
        "fields": 1,
        "corrections": 1,
        "problems": 0,
        "tables": 1,
        "cell_corrections": 1,
        "characters": 9,
        "size_bytes": 1000,
        "file": document.file.name,
        "days": 30,
    }


def test_what_its_stages_have_left_goes_too(old):
    document = old()
    job = force_status(JobFactory(document=document), "COMPLETED", completed_at=clock.now())
    store_output(outputs.path_of(job.pk, "extract"), {"pages": ["Dear Olga"]})
    words.store(job.pk, [{"number": 1, "words": [["Olga", 0.1, 0.1, 0.2, 0.2]]}])
    write(document, words_job=job.pk)

    retention.purge_due(W1)

    assert outputs.load(outputs.path_of(job.pk, "extract")) is None
    assert words.load(job.pk) == []
    assert Document.objects.get().words_job is None
    assert document.jobs.get() == job


def test_what_runs_have_made_of_it_stays(old):
    document = old()
    run = RunFactory(input_document=document, configuration__workspace=document.workspace, status="succeeded")
    ArtifactFactory(run=run)

    retention.purge_due(W1)

    assert purged() == {document.pk}
    assert Run.objects.get().artifacts.count() == 1


def test_the_age_counts_from_when_it_came_in(old):
    older, younger = old(days=31), old(days=29)
    write(younger, created_at=clock.now() - timedelta(days=30, seconds=-60))

    retention.purge_due(W1)

    assert purged() == {older.pk}


def test_a_workspace_without_a_policy_keeps_everything(old, workspace):
    old(days=10_000)
    write(workspace, document_retention_days=None)

    retention.purge_due(W1)
    assert list(retention.purge(workspace, actor="olga")) == []

    assert purged() == set()


def test_each_workspace_has_a_policy_of_its_own(old):
    patient = WorkspaceFactory(document_retention_days=100)
    theirs = age(DocumentFactory(workspace=patient, status="processed"), 50 * DAY)
    ours = old(days=50)

    retention.purge_due(W1)
    assert purged() == {ours.pk}
    age(theirs, 51 * DAY)
    retention.purge_due(W1)

    assert purged() == {ours.pk, theirs.pk}


@pytest.mark.parametrize("status", ["processed", "failed"])
def test_what_has_ended_goes_however_it_ended(old, status):
    document = old(status=status)

    retention.purge_due(W1)

    assert purged() == {document.pk}
    document.refresh_from_db()
    assert document.status == status


def test_what_is_being_processed_stays(old):
    old(status="processing")

    retention.purge_due(W1)

    assert purged() == set()


@pytest.mark.parametrize(("status", "goes"), [(None, False), ("running", False), ("succeeded", True), ("failed", True)])
def test_what_a_run_needs_stays(old, status, goes):
    document = old()
    RunFactory(input_document=document, configuration__workspace=document.workspace, status=status)

    retention.purge_due(W1)

    assert purged() == ({document.pk} if goes else set())


def test_what_somebody_still_has_a_stage_of_stays(old):
    """The stage belongs to a job that was given up; its worker may come back and still publish."""
    document = old(status="failed")
    stage = StageFactory(job=JobFactory(document=document), status="RUNNING")
    force_status(stage.job, "FAILED")

    retention.purge_due(W1)
    assert purged() == set()
    force_status(stage, "ERROR")
    retention.purge_due(W1)

    assert purged() == {document.pk}


@pytest.mark.parametrize("change", [{"document_retention_days": None}, {"document_retention_days": 300}])
def test_a_policy_that_has_changed_since_the_look_spares_it(old, workspace, change):
    document = old()
    write(workspace, **change)

    assert purging.purge(document.pk, days=30, actor=W1) is None

    assert purged() == set()


def test_twice_is_once(old):
    document = old()

    assert purging.purge(document.pk, days=30, actor=W1)["chunks"] == 2
    assert purging.purge(document.pk, days=30, actor=W1) is None

    assert told(document).count("DOCUMENT_PURGED") == 1


def test_the_oldest_go_first_and_one_call_does_so_much(old, monkeypatch):
    monkeypatch.setattr(retention, "SECONDS_AT_ONCE", -1)
    documents = [old(days=days) for days in (40, 60, 50)]
    order = []

    for _ in range(4):
        retention.purge_due(W1)
        order += purged() - set(order)

    assert order == [documents[1].pk, documents[2].pk, documents[0].pk]


def test_those_that_stay_do_not_keep_others_from_going(old, monkeypatch):
    monkeypatch.setattr(retention, "PAGE", 1)
    first, second, third = (old(days=days) for days in (60, 50, 40))
    real = purging.purge
    # Simulate another process that is purging the first document.
    monkeypatch.setattr(purging, "purge", lambda id, **options: None if id == first.pk else real(id, **options))

    results = list(retention.purge(first.workspace, actor="olga"))

    assert [result is not None for result in results] == [False, True, True]
    assert purged() == {second.pk, third.pk}


def test_many_of_the_same_moment_all_go(old, workspace, monkeypatch):
    monkeypatch.setattr(retention, "PAGE", 2)
    documents = [old() for _ in range(5)]
    Document.objects.update(created_at=documents[0].created_at)
    monkeypatch.setattr(purging, "purge", lambda id, **options: seen.append(id))
    seen = []

    list(retention.purge(workspace, actor="olga"))

    assert seen == [document.pk for document in documents]


def test_a_storage_that_is_away_costs_nobody_anything(old, monkeypatch):
    first, second = old(days=50), old(days=40)
    monkeypatch.setattr(default_storage, "delete", lambda name: 1 / 0)

    retention.purge_due(W1)

    assert purged() == {first.pk, second.pk}
    assert default_storage.exists(first.file.name)


def test_what_a_dead_process_left_of_a_purged_document_is_swept_after_a_day(old, monkeypatch):
    document = old()
    key = document.file.name
    assert purging.purge(document.pk, days=30, actor=W1)
    monkeypatch.setattr(periodic, "_blobs", periodic.Sweeper(periodic._walk_documents, periodic._keys_of_documents))

    periodic.sweep_blobs(W1)
    assert default_storage.exists(key)
    os.utime(default_storage.path(key), (time.time() - DAY - 60,) * 2)
    for _ in range(3):
        periodic.sweep_blobs(W1)

    assert not default_storage.exists(key)


def test_its_bytes_may_come_in_again(workspace):
    with intake_of(PDF) as file:
        document = intake.receive(workspace, file, "invoice.pdf", "", "olga")
    lifecycle_end(document)
    retention.purge_due(W1)
    assert purged() == {document.pk}

    with intake_of(PDF) as file:
        another = intake.receive(workspace, file, "invoice.pdf", "", "olga")

    assert (another.sha256, another.pk != document.pk) == (document.sha256, True)
    assert default_storage.exists(another.file.name)


def intake_of(data):
    return ContentFile(data)


def lifecycle_end(document):
    force_status(document.jobs.get(), "COMPLETED", completed_at=clock.now())
    age(force_status(document, "processed"), 31 * DAY)


# Actions on a purged document


def test_it_is_not_processed_again(old):
    document = old()
    retention.purge_due(W1)
    before = columns_of(document)

    assert lifecycle.reprocess(document, actor="olga") is None

    assert columns_of(document) == before
    assert not document.jobs.exists()


@pytest.mark.parametrize("is_known", [True, False], ids=["as it is", "as it was seen before"])
@pytest.mark.parametrize("limit", [None, 100])
def test_a_run_of_it_is_refused_in_words(old, configuration, settings, is_known, limit):
    settings.ADE_QUEUE_SIZE = limit
    document, other = old(), old(days=1)
    retention.purge_due(W1)
    if is_known:
        document.refresh_from_db()

    with pytest.raises(runs.Purged, match=rf"Document {document.pk} was purged on \d{{4}}-") as refused:
        runs.submit(configuration, document, actor="olga")
    with pytest.raises(runs.Purged):
        runs.submit_many(configuration, [other, document], actor="olga")

    assert refused.value.document.pk == document.pk
    assert not Run.objects.exists()


def test_a_run_again_of_it_is_refused(old, configuration):
    document = old()
    run = RunFactory(input_document=document, configuration=configuration, status="succeeded")
    retention.purge_due(W1)

    with pytest.raises(runs.Purged):
        runs.run_again(Run.objects.get(pk=run.pk), actor="olga")


# Writes that the database refuses


@pytest.mark.parametrize(
    "columns", [{"file": "documents/1"}, {"text": "Dear"}, {"embedding": b"1234"}, {"status": "processing"}]
)
def test_one_that_was_purged_cannot_hold_anything(old, columns):
    document = old()
    retention.purge_due(W1)

    with pytest.raises(IntegrityError), transaction.atomic():
        write(document, **columns)


# The preview


def test_a_rehearsal_tells_what_would_go_and_changes_nothing(old, workspace):
    first, _second, needed, _young = old(days=50), old(days=40), old(days=60), old(days=1)
    RunFactory(input_document=needed, configuration__workspace=workspace)

    found = retention.preview(workspace, 30)

    assert (found.documents, found.size_bytes, found.oldest, found.kept) == (2, 2000, first.created_at, 1)
    assert next(row["id"] for row in found.sample) == first.pk
    assert purged() == set()


@pytest.mark.parametrize(("days", "documents"), [(None, 0), (45, 1), (30, 2), (1, 3), (2**31 - 1, 0)])
def test_another_policy_can_be_rehearsed(old, workspace, days, documents):
    for each in (50, 40, 2):
        old(days=each)

    assert retention.preview(workspace, days).documents == documents


def test_a_policy_that_is_changed_is_told_in_the_log(workspace, caplog):
    retention.set_policy(workspace, 7, actor="olga (command)")

    workspace.refresh_from_db()
    assert workspace.document_retention_days == 7
    (line,) = [record.getMessage() for record in caplog.records if "retention.policy" in record.getMessage()]
    assert "olga (command)" in line
    assert "30" in line
