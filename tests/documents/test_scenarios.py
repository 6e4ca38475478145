"""The five scenarios from the requirements for asynchronous extraction, each from beginning to end."""

from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile

from documents import lifecycle, orchestrator
from documents.embedding import numbers
from documents.models import Document, DocumentProcessingJob, Stage
from tests.breaches import assert_all_hold
from tests.documents.processing import add, make_due, pdf, process
from tests.factories import W1, W2, age, bring_to, expire_lease
from tests.services import document_intelligence as di
from tests.services.serving import drips, hangs_up, says
from work import clock, recovery
from work.work_types import work_type_named

pytestmark = pytest.mark.long

INVOICE = "Invoice number: 42\nTotal amount: 7.00 EUR"


def job_of(document):
    return DocumentProcessingJob.objects.get(document=document)


def test_scenario_1_uploading_a_new_pdf_document(places, each_storage, client, olga, workspace):
    client.force_login(olga)
    data = pdf(INVOICE)
    file = SimpleUploadedFile("invoice.pdf", data, "application/pdf")

    answer = client.post("/admin/documents/document/add/", {"workspace": workspace.pk, "file": file}, follow=True)

    assert answer.status_code == 200
    document = Document.objects.get()
    with default_storage.open(document.file.name) as stored:
        assert stored.read() == data
    assert (document.name, document.content_type, document.status) == ("invoice.pdf", "application/pdf", "processing")
    assert (job_of(document).status, job_of(document).attempts) == ("PENDING", 0)
    # No processing happens while the user waits for the answer.
    assert not Stage.objects.exists()
    assert "invoice.pdf" in answer.content.decode()


def test_scenario_2_a_worker_picks_up_a_job(places, transactional_db):
    document = add(pdf(INVOICE))
    before = clock.now()

    claim = lifecycle.begin_next_job(W1)

    job = job_of(document)
    assert claim.id == job.pk
    assert job.status == "PROCESSING"
    assert before <= job.started_at <= clock.now()
    assert lifecycle.begin_next_job(W2) is None


@pytest.mark.only_on("postgresql")
def test_scenario_2_of_two_workers_that_look_at_the_same_moment_each_gets_another(places, threads):
    first, second = add(pdf("one"), name="1.pdf"), add(pdf("two"), name="2.pdf")

    held = threads.hold(lambda: lifecycle.begin_next_job(W1))
    # It does not wait for the row that the other worker has locked.
    other = threads.start(lambda: lifecycle.begin_next_job(W2)).answer()
    held.commit()

    assert {held.answer().id, other.id} == {job_of(first).pk, job_of(second).pk}


def test_scenario_3_successful_extraction_by_the_worker(slot, each_storage, azure, open_ai):
    document = add(pdf(INVOICE, "The second page tells of apples."))

    process(slot)

    document.refresh_from_db()
    job = job_of(document)
    assert (job.status, job.attempts) == ("COMPLETED", 0)
    assert job.started_at <= job.completed_at <= clock.now()
    assert (document.status, document.pages) == ("processed", 2)
    assert "Total amount: 7.00 EUR" in document.text
    fields = {field.name: (field.value, field.page, field.source) for field in document.fields.all()}
    assert fields == {
        "invoice_number": ("42", 1, "service"),
        "total_amount": ("7.00 EUR", 1, "service"),
    }
    assert document.embedding_model == "openai:text-embedding-3-small:256"
    assert len(numbers(bytes(document.embedding))) == 256
    assert [chunk.page for chunk in document.chunks.order_by("position")] == [1, 2]
    assert (azure.count("analyze"), open_ai.count("embed")) == (1, 1)
    assert_all_hold()


FAILURES = {
    "rate limit": says(429, di.failed("429", "Too many requests."), Retry_After=30),
    "error": says(500, b"<html>"),
    "hung up": hangs_up,
    "timeout": drips,
}


@pytest.mark.parametrize("fault", FAILURES.values(), ids=FAILURES)
def test_scenario_4_extraction_fails_by_a_rate_limit_or_a_timeout(slot, azure, monkeypatch, fault):
    monkeypatch.setattr("documents.reading.WALL_SECONDS", 4.0)
    document = add(pdf(INVOICE))
    azure.then("analyze", fault, hangs_up, hangs_up)

    seen = []
    for _ in range(3):
        process(slot)
        job = job_of(document)
        seen.append((job.status, job.attempts, len(job.error_log.splitlines())))
        make_due()

    # The failure that shows that the service is away counts as an attempt. Later probes do not.
    made = 2 if fault is drips else 1
    assert seen[0] == ("PENDING", 1, 1)
    assert seen[-1][1:] == (made, made)
    assert all("Azure Document Intelligence" in line and line.endswith(".") for line in job.error_log.splitlines())
    process(slot)
    assert (job_of(document).status, job_of(document).attempts) == ("COMPLETED", made)
    assert_all_hold()


def test_scenario_5_a_worker_crashes_and_its_job_is_reset(slot, settings):
    document = add(pdf(INVOICE))
    orchestrator.orchestrate(W2)
    stage = expire_lease(bring_to(Stage.objects.get(job__document=document, name="extract"), "RUNNING", W2))
    age(stage, settings.ADE_ZOMBIE_SECONDS + 1)
    job = age(job_of(document), settings.ADE_ZOMBIE_SECONDS + 1)
    assert timedelta(hours=2).total_seconds() == settings.ADE_ZOMBIE_SECONDS

    assert lifecycle.reset_zombies(W1) == 1

    job.refresh_from_db()
    assert (job.status, job.attempts, job.started_at) == ("PENDING", 1, None)
    assert "while no worker was working on it." in job.error_log
    recovery.rescue_expired([work_type_named("stage")], W1)
    make_due()
    process(slot)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("COMPLETED", 1)
    assert_all_hold()
