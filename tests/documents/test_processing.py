"""Documents pass through their stages as with a worker: real files, real readers and a real model."""

import os
import signal
from threading import Event

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import OperationalError
from fpdf import FPDF

import ade_extractor
from documents import children, lifecycle, orchestrator, outputs, periodic, reading, stages, work_types
from documents.copies import COPIES
from documents.embedding import numbers
from documents.embedding.local import DIMENSIONS, MODEL
from documents.models import Document, DocumentChunk, DocumentProcessingJob, Stage
from documents.reader_sessions import SESSIONS, ReaderSession
from tests.breaches import assert_all_hold
from tests.documents.processing import store_output
from tests.extractor.extracting import NOBODY, program
from tests.extractor.scans import image_of, needs_rapidocr, pdf_with
from tests.factories import W1, W2, WorkspaceFactory, age, bring_to, claim_of, events_of, told, write
from work import clock, failpoints, recovery
from work.claims import Holdings
from work.processes.fork_server import ForkServer
from work.processes.supervise import SCRATCH
from work.worker_thread import Bell, WorkerThread

pytestmark = pytest.mark.long

LETTER = "Dear Ms Example,\n\nthe delivery of apples arrived on time.\n\nKind regards\n"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    # IDs repeat across tests.
    SESSIONS.close()
    COPIES.retire(everything=True)


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


def add(content, content_type="text/plain", name="letter.txt", workspace=None):
    data = content.encode() if isinstance(content, str) else content
    file = default_storage.save(f"documents/{name}", ContentFile(data))
    values = {"name": name, "file": file, "content_type": content_type, "size_bytes": len(data), "sha256": "0" * 64}
    return lifecycle.add_document(workspace or WorkspaceFactory(), values)


def pdf(pages):
    made = FPDF()
    made.set_font("Helvetica", size=12)
    for number in range(1, pages + 1):
        made.add_page()
        made.multi_cell(0, 6, f"Page {number} tells of apples and of the number {number * 7}.")
    return bytes(made.output())


def process(slot, most=200):
    """Process until no work is left; return the number of stages done."""
    done = 0
    for _ in range(most):
        brought_on = orchestrator.orchestrate(W1)
        if slot.run_once():
            done += 1
        elif not brought_on:
            return done
    raise AssertionError("the processing does not end")


def until_ready(slot, document, name):
    for _ in range(20):
        orchestrator.orchestrate(W1)
        if Stage.objects.filter(job__document=document, name=name, status="READY").exists():
            return
        slot.run_once()
    raise AssertionError(f"{name} does not get ready")


def test_a_text_is_read_cut_understood_and_published(slot):
    document = add(LETTER)

    assert process(slot) == 3

    document.refresh_from_db()
    assert (document.status, document.pages) == ("processed", 1)
    assert "the delivery of apples arrived on time." in document.text
    (chunk,) = document.chunks.all()
    assert (chunk.position, chunk.page, chunk.embedding_model) == (0, 1, MODEL)
    vector = numbers(bytes(chunk.embedding))
    assert len(vector) == DIMENSIONS
    assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-4)
    assert bytes(document.embedding) == bytes(chunk.embedding)
    assert document.jobs.get().status == "COMPLETED"
    assert_all_hold()


def test_texts_that_mean_the_same_are_near_each_other(slot):
    texts = ["The invoice has to be paid within a month.", "Payment of the bill is due in 30 days.", "Cats like fish."]
    documents = [add(text, name=f"{n}.txt") for n, text in enumerate(texts)]

    process(slot)

    first, near, far = (numbers(bytes(Document.objects.get(pk=each.pk).embedding)) for each in documents)
    assert sum(map(lambda a, b: a * b, first, near)) > sum(map(lambda a, b: a * b, first, far)) + 0.1


def test_a_long_document_is_read_in_segments(slot):
    document = add(pdf(60), "application/pdf", "long.pdf")

    assert process(slot) == 5

    document.refresh_from_db()
    assert document.pages == 60
    assert [f"number {n * 7}." in document.text for n in (1, 25, 26, 51, 60)] == [True] * 5
    assert document.text.index("Page 25 ") < document.text.index("Page 26 ") < document.text.index("Page 51 ")
    assert set(document.chunks.values_list("page", flat=True)) == set(range(1, 61))
    extracts = Stage.objects.filter(job__document=document, name="extract").order_by("segment")
    assert [stage.status for stage in extracts] == ["DONE"] * 3


def test_the_end_of_a_stage_says_what_it_found(slot):
    document = add(LETTER)

    process(slot)

    extract, embed, publish = (
        events_of(Stage.objects.get(job__document=document, name=name)).last().data for name in lifecycle.ORDER
    )
    assert (extract["pages"], extract["pages_total"]) == (1, 1)
    assert extract["characters"] >= len(LETTER.strip())
    assert embed == {"chunks": 1, "fields": 0, "model": MODEL, "pages": 1, "tables": 0}
    assert publish == embed


@needs_rapidocr
def test_a_scan_becomes_chunks_that_are_found_by_their_meaning(slot, tmp_path):
    scan = pdf_with(tmp_path / "scan.pdf", [image_of(tmp_path / "letter.pdf", LETTER)])
    document = add(scan.read_bytes(), "application/pdf", "scan.pdf")
    other = add("Cats like fish.", name="cats.txt")

    process(slot)

    (chunk,), (cats,) = document.chunks.all(), other.chunks.all()
    assert "the delivery of apples arrived on time." in chunk.text
    document.refresh_from_db()
    assert "the delivery of apples arrived on time." in document.text
    fruit = add("Fruit was delivered", name="fruit.txt")
    process(slot)
    near, far = (likeness(fruit.chunks.get(), each) for each in (chunk, cats))
    assert near > far
    done = events_of(Stage.objects.get(job__document=document, name="extract")).last().data
    assert done.keys() == {"pages_total", "pages", "characters"}


def likeness(one, other):
    pairs = zip(numbers(bytes(one.embedding)), numbers(bytes(other.embedding)), strict=True)
    return sum(a * b for a, b in pairs)


def test_scans_that_nobody_has_read_are_told_of(slot, monkeypatch, request, tmp_path):
    monkeypatch.setattr(ade_extractor, "PROGRAM", program(without=NOBODY))
    # Warm children still run the original program, and children of this program must not serve other tests.
    children.POOL.close()
    request.addfinalizer(children.POOL.close)
    image = image_of(tmp_path / "letter.pdf", LETTER)
    scan = pdf_with(tmp_path / "scan.pdf", [image, image], text="The third page has a text.")
    document = add(scan.read_bytes(), "application/pdf", "scan.pdf")

    process(slot)

    data = events_of(Stage.objects.get(job__document=document, name="extract")).last().data
    assert data["scans"] == 2
    assert data["advice"].startswith("2 of 3 pages are scans whose text was not read: install requirements/ocr.txt")
    document.refresh_from_db()
    assert (document.status, document.text.strip()) == ("processed", "The third page has a text.")


def test_a_document_that_cannot_be_read_fails_at_once_and_says_why(slot):
    document = add(b"%PDF-1.7 and nothing else", "application/pdf", "broken.pdf")

    process(slot)

    document.refresh_from_db()
    job = document.jobs.get()
    assert (document.status, job.status, job.attempts) == ("failed", "FAILED", 1)
    assert job.failure_type == "DOCUMENT_REFUSED"
    assert "This PDF cannot be read: " in job.error_message
    assert job.error_message.endswith(".")
    assert not document.chunks.exists()
    assert_all_hold()


def test_a_document_without_its_file_fails_at_once(slot):
    document = add(LETTER)
    default_storage.delete(document.file.name)

    process(slot)

    assert "The stored file of the document is missing: " in document.jobs.get().error_message
    assert document.jobs.get().status == "FAILED"


def test_a_document_without_text_is_processed_all_the_same(slot):
    document = add(" \n ", name="empty.txt")

    process(slot)

    document.refresh_from_db()
    assert document.status in ("processed", "failed")
    assert not document.chunks.exists()


def test_an_output_that_is_there_and_whole_is_not_made_again(slot, monkeypatch):
    document = add(LETTER)
    job = document.jobs.get()
    page = {"number": 1, "tables": [], "text": "what was read before", "width": None, "words": []}
    kept = {"pages_total": 1, "pages": [page]}
    store_output(outputs.path_of(job.pk, "extract"), kept)

    process(slot)

    document.refresh_from_db()
    assert document.text == "what was read before"


def test_an_output_that_is_damaged_is_made_again(slot):
    document = add(LETTER)
    path = outputs.path_of(document.jobs.get().pk, "extract")
    default_storage.save(path, ContentFile(b'0000\n{"pages_total": 1, "pages": []}'))

    process(slot)

    document.refresh_from_db()
    assert "apples" in document.text


def test_processing_again_replaces_what_was_published(slot):
    document = add(LETTER)
    process(slot)
    document.refresh_from_db()
    default_storage.delete(document.file.name)
    default_storage.save(document.file.name, ContentFile(b"Quite another text.\n\nIn two parts."))

    lifecycle.reprocess(document, actor="olga")
    process(slot)

    document.refresh_from_db()
    assert document.status == "processed"
    assert document.text.startswith("Quite another text.")
    assert [chunk.text for chunk in document.chunks.all()] == ["Quite another text.\n\nIn two parts."]
    assert document.jobs.count() == 2


def test_what_a_stale_worker_publishes_is_not_kept(slot):
    document = add(LETTER)
    until_ready(slot, document, "publish")
    claim = lifecycle.claim_stage(W1)
    made = stages.do(claim)
    stage = Stage.objects.get(pk=claim.id)
    assert work_types.STAGE.rescue(
        recovery.LostClaim(
            lifecycle.STAGE_STATES, stage.pk, claim.holder, stage.lease_expires_at, None, recovery.EXPIRED, W2
        )
    )

    assert not stages.succeed(claim, made)

    document.refresh_from_db()
    assert document.text == ""
    assert not DocumentChunk.objects.exists()
    assert told(stage)[-1] == "LATE_WRITE_REFUSED"
    process(slot)
    document.refresh_from_db()
    assert document.status == "processed"
    assert DocumentChunk.objects.count() == 1


def test_a_failed_attempt_is_followed_by_another_that_goes_on_where_it_was(slot, settings):
    document = add(LETTER)
    until_ready(slot, document, "embed")
    stage = bring_to(Stage.objects.get(job__document=document, name="embed"), "RUNNING")
    lifecycle.fail_stage(claim_of(stage), "STAGE_FAILED", "no memory just then")
    process(slot)
    job = document.jobs.get()
    assert (job.status, job.attempts) == ("PENDING", 1)
    DocumentProcessingJob.objects.update(next_attempt_at=job.created_at)

    process(slot)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("COMPLETED", 1)
    starts = events_of(Stage.objects.get(job=job, name="extract")).filter(kind="STAGE_STARTED")
    assert starts.count() == 1


def test_what_stages_have_left_each_other_goes_with_the_job(slot, settings):
    add(LETTER)
    add(b"%PDF-1.7 broken", "application/pdf", "broken.pdf")

    process(slot)

    assert [path for path in (settings.MEDIA_ROOT / "processing").rglob("*") if path.is_file()] == []


def test_what_was_left_of_a_job_that_ended_long_ago_is_swept(slot):
    old, recent = add(LETTER), add("Another letter.", name="other.txt")
    process(slot)
    waiting = add("A third one.", name="third.txt")
    jobs = [document.jobs.get().pk for document in (old, recent, waiting)]
    for id in jobs:
        store_output(outputs.path_of(id, "extract"), {"pages": []})
    age(old.jobs.get(), 2 * 24 * 3600)

    periodic.sweep_outputs()

    assert [outputs.load(outputs.path_of(id, "extract")) is None for id in jobs] == [True, False, False]


@pytest.mark.parametrize("is_warm", [True, False], ids=["warm", "cold"])
def test_nothing_is_left_in_the_working_directory(slot, settings, is_warm):
    settings.ADE_WARM_ENGINES = is_warm
    children.POOL.close()
    add(LETTER)
    add(b"%PDF-1.7 broken", "application/pdf", "broken.pdf")

    process(slot)

    COPIES.retire(everything=True)
    desk = children.POOL.desk()
    folders = list(desk.path.iterdir())
    assert len(folders) == (2 if is_warm else 0)
    assert [sorted(os.listdir(folder)) for folder in folders] == [[SCRATCH]] * len(folders)
    children.POOL.close()
    assert not desk.path.exists()


@pytest.fixture
def forks(monkeypatch):
    """Return the children that were forked, in order."""
    forked = []
    spawn = ForkServer.spawn
    monkeypatch.setattr(
        ForkServer, "spawn", lambda *args, **options: forked.append(spawn(*args, **options)) or forked[-1]
    )
    return forked


def processed_after(slot, meddle):
    """Process a document of three segments; call `meddle` after the first segment has been read."""
    document = add(pdf(60), "application/pdf", "long.pdf")
    orchestrator.orchestrate(W1)
    assert slot.run_once()
    meddle()
    process(slot)
    document.refresh_from_db()
    return document


def test_all_segments_of_a_document_are_read_by_one_fork(slot, forks):
    document = processed_after(slot, lambda: None)

    assert document.status == "processed"
    readers = forks[:-2]
    assert len(readers) == 1
    (idle,) = SESSIONS._idle
    assert idle.job_id == document.jobs.get().pk


def test_whoever_waits_for_a_segment_ends_with_its_last_lease(slot, forks):
    document = processed_after(slot, lambda: [forks[0].trust_until(0.0), forks[0].wait()])

    assert forks[0].ended.stop_reason == "no longer trusted"
    assert (document.status, document.jobs.get().attempts, len(forks)) == ("processed", 0, 4)


def test_what_a_fork_fails_at_later_is_judged_by_a_fresh_one(slot, forks, monkeypatch):
    run = ReaderSession.run

    def kill_and_run(session, *args, **options):
        if session._child is forks[0]:
            signal.pidfd_send_signal(forks[0]._answer.pidfd, signal.SIGKILL)
        return run(session, *args, **options)

    document = processed_after(slot, lambda: monkeypatch.setattr(ReaderSession, "run", kill_and_run))

    assert forks[0].ended.signal == "SIGKILL"
    assert (document.status, document.jobs.get().attempts, len(forks)) == ("processed", 0, 4)


def test_a_segment_that_takes_too_long_ends_its_fork(slot, forks, monkeypatch):
    monkeypatch.setattr(reading, "WALL_SECONDS", 0.5)
    begun = ReaderSession._start

    def begun_and_stopped(session, *args):
        child = begun(session, *args)
        signal.pidfd_send_signal(child._answer.pidfd, signal.SIGSTOP)
        return child

    monkeypatch.setattr(ReaderSession, "_start", begun_and_stopped)
    document = add(LETTER)
    orchestrator.orchestrate(W1)
    assert slot.run_once()

    stage = Stage.objects.get(job__document=document, name="extract")
    assert stage.status == "ERROR"
    assert stage.error_message.startswith("Reading did not finish within 0.5 s, because this machine is too busy")


def test_sessions_of_ended_forks_are_given_up(slot, forks):
    processed_after(slot, lambda: None)
    forks[0].trust_until(0.0)
    forks[0].wait()

    periodic.rest()

    assert SESSIONS._idle == []
    assert {each.name for each in children.POOL._idle} >= {children.EXTRACTOR, children.EMBEDDER}


@pytest.mark.parametrize("lost", ["extract", "embed"])
def test_an_output_that_is_lost_is_made_again(slot, lost):
    document = add(LETTER)
    until_ready(slot, document, lifecycle.ORDER[lifecycle.ORDER.index(lost) + 1])
    default_storage.delete(outputs.path_of(document.jobs.get().pk, lost))

    process(slot)
    job = document.jobs.get()
    assert (job.status, job.attempts) == ("PENDING", 1)
    write(job, next_attempt_at=clock.now())
    process(slot)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("COMPLETED", 1)
    assert_all_hold()


def test_what_is_published_is_published_again_when_the_database_was_away(slot):
    document = add(LETTER)
    until_ready(slot, document, "publish")
    claim = lifecycle.claim_stage(W1)
    made = stages.do(claim)
    failpoints.arm("stage.finish.before_commit:raise*1")
    try:
        with pytest.raises(OperationalError):
            stages.succeed(claim, made)
    finally:
        failpoints.arm("")

    assert stages.succeed(claim, made)

    document.refresh_from_db()
    assert "apples" in document.text
    assert document.chunks.count() == 1


def test_a_copy_that_is_forgotten_while_it_is_fetched_does_not_stay(slot, settings, tmp_path):
    settings.ADE_STAGE_CONCURRENCY = 1
    document = add(LETTER)
    desk = children.POOL.desk().path

    def others_begin():
        for job_id in (-1, -2, -3):
            COPIES._copy_of(job_id)

    COPIES.link(document.file, -9, tmp_path / "laid", others_begin)

    assert (tmp_path / "laid").read_text() == LETTER
    assert list(desk.glob("*.document")) == []
