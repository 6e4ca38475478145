"""Documents whose files are in a container, and a blob service that fails at each step.

| fault | what happens | tests |
|---|---|---|
| F1 | the service is down before the rows are written | `test_f1_…` |
| F2 | the blob is written, but its rows are not | `test_f2_…` |
| F3 | the blob is missing or unavailable when it is processed | `test_f3_…` |
| C18 | the process dies between document and job | `test_c18_…` |
"""

import io
import json
import signal
from datetime import timedelta
from threading import Event

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError

from documents import blobs as module
from documents import intake, orchestrator, periodic, work_types
from documents.intake import StorageFailed
from documents.models import Document, DocumentProcessingJob
from tests.azurite import KEY, connection_string, followed, storages, stored_files
from tests.breaches import assert_all_hold
from tests.documents.faulty import WAYS, Gate
from tests.documents.samples import PDF
from tests.factories import W1, told
from work import clock, failpoints
from work.claims import Holdings
from work.worker_thread import Bell, WorkerThread

pytestmark = pytest.mark.long

ADD = """
import json, sys, django
django.setup()
from pathlib import Path
from documents import intake
from workspaces.models import Workspace
from work import failpoints
failpoints.arm_from_settings()
print(json.dumps(intake.add_file(Workspace.objects.get(), Path(sys.argv[1]), actor="olga").pk))
"""
LETTER = b"Dear Ms Example,\n\nthe delivery of apples arrived on time.\n\nKind regards\n"


@pytest.fixture(autouse=True)
def var(settings, tmp_path, monkeypatch):
    settings.VAR_DIR = tmp_path
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path
    monkeypatch.setattr(periodic, "_blobs", periodic.Sweeper(periodic._walk_documents, periodic._keys_of_documents))


@pytest.fixture
def slot(transactional_db):
    return WorkerThread(
        work_types.STAGE,
        0,
        owner=W1,
        bell=Bell(),
        holdings=Holdings(),
        stopping=Event(),
        on_end=lambda kind: None,
        on_contention=lambda kind, met: None,
    )


@pytest.fixture
def gate(blobs, azurite, settings):
    """A proxy for the container of the test that forwards everything at first."""
    usual = settings.STORAGES
    with Gate(azurite.endpoint) as gate:
        gate.fault = lambda method, path: None
        settings.STORAGES = storages(connection_string(gate.address), settings.ADE_AZURE_CONTAINER)
        yield gate
        default_storage.service_client.close()
        settings.STORAGES = usual


@pytest.fixture(params=WAYS)
def down(request, settings, monkeypatch):
    """A service that is down, in each possible way."""
    monkeypatch.setattr(module, "READ_SECONDS", 0.5)
    with WAYS[request.param]() as address:
        settings.STORAGES = storages(connection_string(address), "documents")
        yield
        default_storage.service_client.close()


@pytest.fixture
def fails_at():
    yield lambda point: failpoints.arm(f"{point}:raise*1")
    failpoints.arm("")


def receive(workspace, data=LETTER, name="letter.txt"):
    return intake.receive(workspace, io.BytesIO(data), name, "", "olga")


def process(slot):
    for _ in range(50):
        brought_on = orchestrator.orchestrate(W1)
        if not slot.run_once() and not brought_on:
            return
    raise AssertionError("the processing does not end")


def a_day_later(monkeypatch):
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + periodic.OLD + timedelta(minutes=1))


def nothing_is_there():
    return not Document.objects.exists() and not DocumentProcessingJob.objects.exists()


def test_a_file_is_pushed_to_the_container_and_processed_from_there(client, workspace, olga, blobs, slot, monkeypatch):
    client.force_login(olga)

    sent = SimpleUploadedFile("letter.txt", LETTER, "text/plain")
    answer = client.post("/admin/documents/document/add/", {"workspace": workspace.pk, "file": sent})

    document = Document.objects.get()
    assert answer.status_code == 302
    assert stored_files() == [document.file.name]
    assert document.jobs.get().status == "PENDING"

    process(slot)

    document.refresh_from_db()
    assert document.status == "processed"
    assert "the delivery of apples arrived on time." in document.text
    assert document.chunks.count() == 1
    assert stored_files() == [document.file.name]
    assert_all_hold()
    download = followed(client.get(f"/documents/{document.pk}/download/"))
    assert b"".join(download.streaming_content) == LETTER
    a_day_later(monkeypatch)
    periodic.sweep_blobs()
    periodic.sweep_outputs()
    assert stored_files() == [document.file.name]


@pytest.mark.django_db
def test_f1_without_the_service_nothing_is_taken_in(workspace, down):
    with pytest.raises(
        StorageFailed, match=r"^Could not store the file: the blob service .+\. Try again later\."
    ) as no:
        receive(workspace)

    assert no.value.code == "storage_unavailable"
    assert nothing_is_there()


@pytest.mark.django_db
def test_f1_who_uploads_is_told_to_come_again(client, workspace, olga, down, caplog):
    client.force_login(olga)

    sent = SimpleUploadedFile("invoice.pdf", PDF, "application/pdf")
    answer = client.post("/admin/documents/document/add/", {"workspace": workspace.pk, "file": sent})

    assert answer.status_code == 503
    assert "Could not store the file: the blob service" in answer.content.decode()
    assert KEY not in answer.content.decode() + caplog.text
    assert nothing_is_there()


@pytest.mark.django_db
def test_f1_a_service_that_fails_in_the_middle_leaves_nothing(workspace, gate):
    data = PDF + b"\n" * (9 << 20)
    gate.fault = lambda method, path: 503 if "comp=blocklist" in path else None

    with pytest.raises(StorageFailed, match="answered with 503 InternalError"):
        receive(workspace, data, "invoice.pdf")

    assert sum(method == "PUT" and "comp=block&" in path for method, path in gate.seen) == 3
    assert stored_files() == []
    assert nothing_is_there()
    gate.fault = lambda method, path: None
    assert receive(workspace, data, "invoice.pdf").size_bytes == len(data)


@pytest.mark.django_db
@pytest.mark.parametrize("point", ["upload.blob_written", "upload.before_commit"])
def test_f2_rows_that_cannot_be_written_leave_no_blob(workspace, blobs, fails_at, point):
    fails_at(point)

    with pytest.raises(OperationalError):
        receive(workspace)

    assert stored_files() == []
    assert nothing_is_there()


@pytest.mark.django_db
def test_f2_a_blob_that_cannot_be_removed_then_is_swept_after_a_day(workspace, gate, fails_at, monkeypatch):
    fails_at("upload.before_commit")
    gate.fault = lambda method, path: 503 if method == "DELETE" else None
    with pytest.raises(OperationalError):
        receive(workspace)
    gate.fault = lambda method, path: None
    kept = receive(workspace, PDF, "invoice.pdf")
    assert len(stored_files()) == 2

    periodic.sweep_blobs()
    assert len(stored_files()) == 2
    a_day_later(monkeypatch)
    periodic.sweep_blobs()
    periodic.sweep_blobs()

    assert stored_files() == [kept.file.name]


@pytest.mark.parametrize("point", ["upload.blob_written", "upload.before_commit"])
def test_c18_who_dies_between_blob_and_commit_leaves_a_blob_and_no_row(
    point, programs, workspace, azurite, blobs, settings, tmp_path, monkeypatch
):
    letter = tmp_path / "letter.txt"
    letter.write_bytes(LETTER)
    chosen = {
        "ADE_STORAGE": "azure",
        "ADE_AZURE_STORAGE_CONNECTION": azurite.connection(),
        "ADE_AZURE_CONTAINER": settings.ADE_AZURE_CONTAINER,
    }

    dying = programs.start("-c", ADD, letter, **chosen, ADE_FAILPOINTS=f"{point}:kill9")

    assert dying.code() == -signal.SIGKILL, dying.logged()
    (orphan,) = stored_files()
    assert nothing_is_there()
    other = programs.start("-c", ADD, letter, **chosen)
    assert other.code() == 0, other.logged()
    document = Document.objects.get()
    assert told(document) == ["DOCUMENT_ADDED"]
    assert document.jobs.get().status == "PENDING"
    assert sorted(stored_files()) == sorted([orphan, document.file.name])
    a_day_later(monkeypatch)
    periodic.sweep_blobs()
    assert stored_files() == [document.file.name]


def test_f3_a_document_whose_blob_is_missing_fails_and_says_so(workspace, blobs, slot):
    document = receive(workspace)
    blobs.delete(document.file.name)

    process(slot)

    document.refresh_from_db()
    job = document.jobs.get()
    assert (document.status, job.status) == ("failed", "FAILED")
    assert "The stored file of the document is missing: " in job.error_message
    assert "the blob does not exist" in job.error_message
    assert_all_hold()


@pytest.mark.parametrize("fault", [500, 403, "break"])
def test_f3_a_blob_that_cannot_be_had_just_now_is_asked_for_again(workspace, gate, slot, fault):
    document = receive(workspace)
    gate.fault = lambda method, path: fault if method == "GET" and "/documents/20" in path else None

    process(slot)

    job = document.jobs.get()
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert "the blob service" in job.error_message
    assert KEY not in json.dumps(list(job.stages.values_list("error_message", flat=True)))
    gate.fault = lambda method, path: None
    DocumentProcessingJob.objects.update(next_attempt_at=job.created_at)
    process(slot)
    document.refresh_from_db()
    assert document.status == "processed"
    assert_all_hold()


def test_f3_a_container_that_is_away_fails_no_document(workspace, gate, slot, settings):
    document = receive(workspace)
    settings.STORAGES = storages(connection_string(gate.address), "nowhere")

    process(slot)
    default_storage.service_client.close()

    job = document.jobs.get()
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert "the container does not exist" in job.error_message
