import pytest

from documents import lifecycle, orchestrator
from documents.models import Document, DocumentProcessingJob, Stage
from tests.factories import JobFactory, StageFactory, bring_to, claim_of, told, write

pytestmark = pytest.mark.django_db


def stages_of(job):
    return list(job.stages.order_by("name", "segment").values_list("name", "segment", "status"))


def done(job, name, segment=0):
    """Finish the stage as a worker would."""
    stage = job.stages.get(name=name, segment=segment)
    return bring_to(stage, "DONE")


@pytest.fixture
def job():
    return JobFactory()


def test_a_job_that_is_due_is_taken_up_with_its_first_segment_ready(job, w1):
    assert orchestrator.orchestrate(w1)

    job.refresh_from_db()
    assert job.status == "PROCESSING"
    assert stages_of(job) == [("embed", 0, "NEW"), ("extract", 0, "READY"), ("publish", 0, "NEW")]


def test_the_other_segments_follow_when_the_length_is_known(job, w1):
    orchestrator.orchestrate(w1)
    done(job, "extract")
    Document.objects.filter(pk=job.document_id).update(pages=51)

    assert orchestrator.orchestrate(w1)

    extracts = [(segment, status) for name, segment, status in stages_of(job) if name == "extract"]
    assert extracts == [(0, "DONE"), (1, "READY"), (2, "READY")]
    assert job.stages.get(name="embed").status == "NEW"


def test_what_an_earlier_job_has_counted_is_not_relied_on(job, w1):
    Document.objects.filter(pk=job.document_id).update(pages=30)

    orchestrator.orchestrate(w1)

    assert list(job.stages.filter(name="extract").values_list("segment", "status")) == [(0, "READY")]


def test_stages_are_brought_on_one_after_the_other_and_the_job_completed(job, w1):
    orchestrator.orchestrate(w1)
    seen = []
    for name in lifecycle.ORDER:
        done(job, name)
        orchestrator.orchestrate(w1)
        seen.append([status for _, _, status in stages_of(job)])

    job.refresh_from_db()
    # In the order embed, extract, publish.
    assert seen == [["READY", "DONE", "NEW"], ["DONE", "DONE", "READY"], ["DONE", "DONE", "DONE"]]
    assert (job.status, job.document.status) == ("COMPLETED", "processed")
    assert not orchestrator.orchestrate(w1)


def test_a_failed_stage_gives_the_job_back_for_another_attempt(job, w1):
    orchestrator.orchestrate(w1)
    stage = bring_to(job.stages.get(name="extract"), "RUNNING")
    lifecycle.fail_stage(claim_of(stage), "EXTRACTION_FAILED", "the server was busy")

    orchestrator.orchestrate(w1)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert "the server was busy" in job.error_log


def test_a_document_that_cannot_be_read_fails_at_once(job, w1):
    orchestrator.orchestrate(w1)
    stage = bring_to(job.stages.get(name="extract"), "RUNNING")
    lifecycle.fail_stage(claim_of(stage), lifecycle.REFUSED, "expected a PDF without a password")

    orchestrator.orchestrate(w1)

    job.refresh_from_db()
    assert (job.status, job.attempts, job.failure_type) == ("FAILED", 1, "DOCUMENT_REFUSED")
    assert job.document.status == "failed"
    assert "expected a PDF without a password" in job.error_message


def test_no_more_jobs_are_taken_up_than_keep_the_slots_busy(settings, w1):
    settings.ADE_STAGE_CONCURRENCY = 2
    JobFactory.create_batch(7)

    orchestrator.orchestrate(w1)

    assert DocumentProcessingJob.objects.filter(status="PROCESSING").count() == 4
    assert Stage.objects.filter(status="READY").count() == 4


@pytest.mark.parametrize("failure_type", ["EXTRACTION_FAILED", lifecycle.REFUSED])
def test_what_a_job_that_failed_left_ready_keeps_no_other_from_being_taken_up(settings, job, w1, failure_type):
    settings.ADE_STAGE_CONCURRENCY = 2
    orchestrator.orchestrate(w1)
    lifecycle.plan(job.pk, 8, actor=w1)
    lifecycle.advance(job.pk, actor=w1)
    lifecycle.fail_stage(
        claim_of(bring_to(job.stages.get(segment=0, name="extract"), "RUNNING")), failure_type, "no text"
    )
    orchestrator.orchestrate(w1)
    other = JobFactory()

    orchestrator.orchestrate(w1)

    other.refresh_from_db()
    assert other.status == "PROCESSING"


def test_what_is_being_worked_at_is_left_alone(job, w1):
    orchestrator.orchestrate(w1)
    bring_to(job.stages.get(name="extract"), "RUNNING")
    before = told(job)

    assert not orchestrator.orchestrate(w1)

    assert told(job) == before


def test_a_job_that_is_not_due_waits(w1):
    job = JobFactory()
    write(job, next_attempt_at=job.next_attempt_at.replace(year=2999))

    assert not orchestrator.orchestrate(w1)

    job.refresh_from_db()
    assert job.status == "PENDING"
    assert not StageFactory._meta.model.objects.exists()
