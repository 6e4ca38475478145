"""The outcome of a job when an external service fails (faults F4 to F11)."""

import signal
from datetime import timedelta
from threading import Event

import pytest

from documents import backoff, reading
from documents.embedding import numbers
from documents.models import DocumentChunk, DocumentProcessingJob, Stage
from tests.breaches import assert_all_hold
from tests.documents.processing import TXT, add, make_due, pdf, process
from tests.factories import events_of
from tests.services import document_intelligence as di
from tests.services import openai as oa
from tests.services.serving import changed, drips, hangs_up, says, waits_for
from tests.stepping import until
from work import clock

TEXT = "Invoice number: 42\nTotal amount: 7.00 EUR"
# More than one batch of texts.
LETTERS = "\n\n".join(f"Letter {n}. " + f"It tells of apples and of the number {n}. " * 20 for n in range(300)).encode()

pytestmark = pytest.mark.long


def job_of(document):
    return DocumentProcessingJob.objects.get(document=document)


def stage_of(document, name="extract"):
    return Stage.objects.get(job__document=document, name=name, segment=0)


def test_a_document_is_read_and_understood_by_services(slot, azure, open_ai):
    document = add(pdf(TEXT, "The second page."))

    process(slot)

    document.refresh_from_db()
    assert (document.status, document.pages) == ("processed", 2)
    assert "Total amount: 7.00 EUR" in document.text
    chunks = document.chunks.all()
    assert {chunk.embedding_model for chunk in chunks} == {"openai:text-embedding-3-small:256"}
    assert [len(numbers(bytes(chunk.embedding))) for chunk in chunks] == [256, 256]
    assert document.embedding_model == "openai:text-embedding-3-small:256"
    assert (azure.count("analyze"), open_ai.count("embed")) == (1, 1)
    assert_all_hold()


# F4


def test_f4_a_job_waits_for_as_long_as_the_service_says_and_nobody_holds_it_meanwhile(slot, azure):
    document = add(pdf(TEXT))
    azure.then("analyze", says(429, di.failed("429", "Too many requests."), Retry_After=77))
    before = clock.now()

    process(slot)

    job, stage = job_of(document), stage_of(document)
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert timedelta(seconds=77) <= job.next_attempt_at - before <= timedelta(seconds=77) + (clock.now() - before)
    assert (stage.status, stage.lease_owner, stage.failure_type) == ("ERROR", None, "EXTRACTION_FAILED")
    assert "429" in job.error_log
    assert azure.count("analyze") == 1
    make_due()
    process(slot)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("COMPLETED", 1)
    assert_all_hold()


def test_f4_nobody_waits_for_as_long_as_an_absurd_service_says(slot, azure):
    document = add(pdf(TEXT))
    azure.then("analyze", says(429, b"", Retry_After=10**9))
    before = clock.now()

    process(slot)

    wait = job_of(document).next_attempt_at - before
    assert timedelta(seconds=backoff.LONGEST_RETRY_AFTER_SECONDS - 1) < wait
    assert wait < timedelta(seconds=backoff.LONGEST_RETRY_AFTER_SECONDS + 60)


def test_f4_vectors_wait_too_and_what_was_read_is_not_read_again(slot, azure, open_ai):
    document = add(pdf(TEXT))
    open_ai.then("embed", says(429, {"error": {"code": "rate_limit_exceeded"}}, Retry_After_Ms=1500))

    process(slot)
    job = job_of(document)
    assert (job.status, job.attempts, stage_of(document, "embed").failure_type) == ("PENDING", 1, "EMBEDDING_FAILED")
    assert stage_of(document, "embed").retry_after_seconds == 1.5
    make_due()
    process(slot)

    assert job_of(document).status == "COMPLETED"
    assert (azure.count("analyze"), open_ai.count("embed")) == (1, 2)


def test_f4_a_later_segment_is_not_asked_for_twice_either(slot, azure):
    """A kept session that fails is normally replaced and retried at once; a failure of the service must not be retried,
    because the service was already asked.
    """
    document = add(pdf(*[f"Page {n}." for n in range(1, 31)]))
    azure.then("analyze", None, says(429, b"", Retry_After=50))

    process(slot)

    job = job_of(document)
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert Stage.objects.get(job=job, name="extract", segment=1).retry_after_seconds == 50
    assert azure.count("analyze") == 2
    make_due()
    process(slot)
    assert job_of(document).status == "COMPLETED"
    assert [asked.query["pages"] for asked in azure.asked if asked.what == "analyze"] == ["1-25", "26-30", "26-30"]


# F5


def test_f5_a_service_that_is_down_is_asked_again_later_and_costs_one_attempt(slot, azure):
    document = add(pdf(TEXT))
    azure.then("analyze", says(500, b"<html>"), hangs_up, says(503, b""))

    seen = []
    for _ in range(4):
        process(slot)
        job = job_of(document)
        seen.append((job.status, job.attempts, stage_of(document).postponements))
        make_due()

    document.refresh_from_db()
    assert seen == [("PENDING", 1, 0), ("PROCESSING", 1, 1), ("PROCESSING", 1, 2), ("COMPLETED", 1, 2)]
    assert document.status == "processed"
    assert azure.count("analyze") == 4
    assert "500" in job.error_log
    postponed = [event.message for event in events_of(stage_of(document)).filter(kind="STAGE_POSTPONED")]
    assert ["closed the connection" in postponed[0], "503" in postponed[1]] == [True] * 2
    assert_all_hold()


# F6


def test_f6_a_job_that_is_refused_fails_at_once_and_says_which_setting(slot, azure, settings):
    settings.ADE_AZURE_DI_KEY = "another-key-of-azure"
    document = add(pdf(TEXT))

    process(slot)

    document.refresh_from_db()
    job = job_of(document)
    assert (document.status, job.status, job.attempts) == ("failed", "FAILED", 1)
    assert (job.failure_type, stage_of(document).failure_type) == ("SERVICE_REFUSED", "SERVICE_REFUSED")
    assert "ADE_AZURE_DI_KEY" in job.error_message
    told = [event.message for subject in (document, job, stage_of(document)) for event in events_of(subject)]
    assert not any("another-key" in text for text in [job.error_log, job.error_message, *told])
    assert len(azure.asked) == 1
    assert_all_hold()


def test_f6_a_quota_that_is_exhausted_fails_the_job_at_once(slot, open_ai):
    document = add(b"A letter.", TXT, "letter.txt")
    open_ai.then("embed", says(429, {"error": {"code": "insufficient_quota", "message": "Spent."}}, Retry_After=1))

    process(slot)

    job = job_of(document)
    assert (job.status, job.attempts, job.failure_type) == ("FAILED", 1, "SERVICE_REFUSED")
    assert "billing" in job.error_message
    assert open_ai.count("embed") == 1


def test_f6_a_document_that_nobody_can_read_is_still_refused_as_such(slot, azure):
    document = add(b"%PDF-1.7 and nothing else")

    process(slot)

    assert job_of(document).failure_type == "DOCUMENT_REFUSED"
    assert azure.asked == []


# F7, F8, F9


def test_f7_f8_what_takes_for_ever_costs_an_attempt(slot, azure, monkeypatch):
    monkeypatch.setattr(reading, "WALL_SECONDS", 5.0)
    document = add(pdf(TEXT))
    azure.then("poll", drips)

    process(slot)
    azure.running = 10**6
    make_due()
    process(slot)

    job = job_of(document)
    assert (job.status, job.attempts) == ("PENDING", 2)
    assert job.error_log.count("did not finish within") == 2
    assert azure.count("analyze") == 2


def test_f9_answers_that_cannot_be_used_fail_the_job_with_their_reason(slot, azure, settings):
    settings.ADE_DOCUMENT_ATTEMPTS = 3
    document = add(pdf(TEXT))
    azure.running = 0
    nan = changed(lambda body: body.replace(b'"confidence": 0.93', b'"confidence": NaN'))
    azure.then("poll", nan, changed(lambda body: body[:-9]), says(200, {"status": "succeeded"}))

    for _ in range(3):
        process(slot)
        make_due()

    job = job_of(document)
    assert (job.status, job.failure_type) == ("FAILED", "ATTEMPTS_EXHAUSTED")
    assert job.error_log.count("sent an invalid answer: ") == 3
    assert not DocumentChunk.objects.exists()


# F10: crashes after the paid call


@pytest.fixture
def worker(programs, places, azure, open_ai):
    """Start a real worker that calls the servers of the test."""

    def start(name="w1", **environment):
        return programs.worker(
            name, "stage=2",
            ADE_VAR_DIR=places, ADE_EXTRACTOR="azure", ADE_AZURE_DI_ENDPOINT=azure.url, ADE_AZURE_DI_KEY=di.KEY,
            ADE_EMBEDDER="openai", ADE_OPENAI_URL=f"{open_ai.url}/v1", ADE_OPENAI_KEY=oa.KEY, **environment,
        )  # fmt: skip

    return start


def until_completed(document):
    until(lambda: job_of(document).status in ("COMPLETED", "FAILED"))
    assert job_of(document).status == "COMPLETED", job_of(document).error_log


def test_f10_what_was_answered_and_kept_is_not_paid_again_though_the_worker_dies(worker, azure):
    document = add(pdf(TEXT))

    assert worker(ADE_FAILPOINTS="job.analysed:kill9").code() == -signal.SIGKILL
    worker()
    until_completed(document)

    assert azure.count("analyze") == 1
    assert job_of(document).attempts == 0
    assert stage_of(document).losses == 1
    assert_all_hold()


def test_f10_what_was_answered_and_not_kept_is_paid_once_more_and_counted_as_a_loss(worker, azure):
    """Freeze and kill the worker when the answer arrives, so that it cannot have been stored."""
    document = add(pdf(TEXT))
    frozen = Event()
    azure.running = 0
    azure.then("poll", waits_for(frozen))
    first = worker()
    until(lambda: azure.count("poll"))

    first.freeze()
    frozen.set()
    until(lambda: azure.answered["poll"])
    first.kill()
    worker()
    until_completed(document)

    assert azure.count("analyze") == 2
    assert (job_of(document).attempts, stage_of(document).losses) == (0, 1)
    assert_all_hold()


# F11: partial vectors


def published(document):
    chunks = list(document.chunks.order_by("position").values_list("position", flat=True))
    assert chunks == list(range(len(chunks)))
    return len(chunks)


def test_f11_a_service_that_dies_after_the_first_batch_leaves_nothing_behind(slot, open_ai):
    document = add(LETTERS, TXT, "letters.txt")
    open_ai.then("embed", None, hangs_up)

    process(slot)
    assert (job_of(document).status, DocumentChunk.objects.count()) == ("PENDING", 0)
    assert open_ai.count("embed") == 2
    make_due()
    process(slot)

    assert job_of(document).status == "COMPLETED"
    assert published(document) == len({text for batch in open_ai.texts() for text in batch}) > 256
    assert_all_hold()


def test_f11_a_worker_that_is_killed_with_its_vectors_in_hand_publishes_each_of_them_once(worker, open_ai):
    document = add(LETTERS, TXT, "letters.txt")

    assert worker(ADE_FAILPOINTS="job.embedded:kill9").code() == -signal.SIGKILL
    assert not DocumentChunk.objects.exists()
    worker()
    until_completed(document)

    texts = [text for batch in open_ai.texts() for text in batch]
    assert len(texts) == len(set(texts)) == published(document)
    assert stage_of(document, "embed").losses == 1
    assert_all_hold()
