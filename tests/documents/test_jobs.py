from datetime import timedelta

import pytest

from documents import lifecycle
from documents.models import DocumentProcessingJob, Stage
from tests.factories import JobFactory, StageFactory, claim_of, columns_of, events_of, force_status, told, write
from tests.writers import WRITERS
from work import clock
from work import lifecycle as kernel

pytestmark = pytest.mark.django_db


@pytest.fixture
def job():
    return JobFactory(status="PROCESSING")


def stages_of(job, status=None):
    rows = Stage.objects.filter(job=job).order_by("id")
    return list((rows.filter(status=status) if status else rows).values_list("name", "segment"))


def finish_ready(job):
    for stage in Stage.objects.filter(job=job, status="READY"):
        lifecycle.finish_stage(claim_of(kernel_start(stage)))


def kernel_start(stage):
    assert kernel.move(lifecycle.STAGE_STATES, stage.pk, "start", actor="w1@here:101:boot1")
    stage.refresh_from_db()
    return stage


# begin


@pytest.mark.parametrize("writer", WRITERS)
def test_the_job_that_was_due_first_begins_first(writer, monkeypatch, w1):
    monkeypatch.setattr(kernel, "_writer", lambda: writer)
    later, sooner = JobFactory.create_batch(2)
    write(sooner, next_attempt_at=later.next_attempt_at - timedelta(seconds=1))

    claims = [lifecycle.begin_next_job(w1), lifecycle.begin_next_job(w1)]

    assert [claim.id for claim in claims] == [sooner.pk, later.pk]
    sooner.refresh_from_db()
    assert (sooner.status, sooner.lease_owner, sooner.lease_expires_at) == ("PROCESSING", None, None)
    assert sooner.started_at is not None
    event = events_of(sooner).last()
    assert (event.kind, event.from_status, event.to_status) == ("JOB_STARTED", "PENDING", "PROCESSING")
    assert event.actor == w1


def test_a_job_that_is_not_due_waits(w1):
    write(JobFactory(), next_attempt_at=clock.now() + timedelta(seconds=60))

    assert lifecycle.begin_next_job(w1) is None


@pytest.mark.parametrize("status", ["PROCESSING", "COMPLETED", "FAILED"])
def test_only_a_pending_job_begins(status, w1):
    before = columns_of(job := JobFactory(status=status))

    assert lifecycle.begin_next_job(w1) is None

    assert columns_of(job) == before


def test_a_new_attempt_begins_with_what_the_last_one_left_undone(w1):
    job = JobFactory()
    done, failed, ready, running, new = (
        StageFactory(job=job, status=status) for status in ("DONE", "ERROR", "READY", "RUNNING", "NEW")
    )
    write(failed, losses=2)
    kept = [columns_of(done), columns_of(running), columns_of(new)]

    lifecycle.begin_next_job(w1)

    failed.refresh_from_db()
    ready.refresh_from_db()
    assert (failed.status, failed.losses, failed.failure_type, failed.error_message) == ("NEW", 2, "", "")
    assert (failed.started_at, failed.finished_at) == (None, None)
    assert ready.status == "NEW"
    assert [told(failed)[-1], told(ready)[-1]] == ["STAGE_RENEWED", "STAGE_RENEWED"]
    assert [columns_of(done), columns_of(running), columns_of(new)] == kept


# plan


def test_a_plan_is_a_stage_for_each_segment_and_then_one_of_each(job, w1):
    lifecycle.plan(job.pk, 2, actor=w1)

    assert stages_of(job) == [("extract", 0), ("extract", 1), ("embed", 0), ("publish", 0)]
    assert {stage.status for stage in Stage.objects.all()} == {"NEW"}
    for stage in Stage.objects.all():
        event = events_of(stage).get()
        assert (event.kind, event.to_status, event.actor) == ("STAGE_PLANNED", "NEW", w1)


def test_a_plan_leaves_the_stages_that_exist_as_they_are(job, w1):
    done = StageFactory(job=job, name="extract", segment=0, status="DONE")
    before = columns_of(done)

    lifecycle.plan(job.pk, 2, actor=w1)
    lifecycle.plan(job.pk, 2, actor=w1)

    assert stages_of(job) == [("extract", 0), ("extract", 1), ("embed", 0), ("publish", 0)]
    assert columns_of(done) == before


# advance


def test_stages_become_ready_in_their_order_and_never_before(job, w1):
    lifecycle.plan(job.pk, 2, actor=w1)
    seen = []

    for _ in range(3):
        lifecycle.advance(job.pk, actor=w1)
        seen.append(stages_of(job, "READY"))
        finish_ready(job)

    assert seen == [[("extract", 0), ("extract", 1)], [("embed", 0)], [("publish", 0)]]
    assert lifecycle.advance(job.pk, actor=w1) == 0


@pytest.mark.parametrize("status", ["READY", "RUNNING", "ERROR"])
def test_nothing_becomes_ready_behind_a_stage_that_is_not_done(job, status, w1):
    StageFactory(job=job, name="extract", segment=0, status="DONE")
    StageFactory(job=job, name="extract", segment=1, status=status)
    embed = StageFactory(job=job, name="embed")

    assert lifecycle.advance(job.pk, actor=w1) == 0

    embed.refresh_from_db()
    assert embed.status == "NEW"


def test_a_stage_that_became_ready_is_told(job, w1):
    stage = StageFactory(job=job)

    assert lifecycle.advance(job.pk, actor=w1) == 1

    event = events_of(stage).last()
    assert (event.kind, event.from_status, event.to_status, event.actor) == ("STAGE_READY", "NEW", "READY", w1)


@pytest.mark.parametrize("status", ["PENDING", "COMPLETED", "FAILED"])
def test_nothing_becomes_ready_in_a_job_that_is_not_under_way(status, w1):
    stage = StageFactory(job=JobFactory(status=status))

    assert lifecycle.advance(stage.job_id, actor=w1) == 0

    stage.refresh_from_db()
    assert stage.status == "NEW"


# settle: the end of a job


def test_when_all_stages_are_done_job_and_document_are_too(job, w1):
    StageFactory.create_batch(2, job=job, status="DONE")
    before = clock.now()

    assert lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert (job.status, job.document.status, job.attempts) == ("COMPLETED", "processed", 0)
    assert before <= job.completed_at <= clock.now()
    assert job.finished_at is not None
    assert (told(job)[-1], told(job.document)[-1]) == ("JOB_COMPLETED", "DOCUMENT_PROCESSED")


def test_job_and_document_end_in_one_transaction(job, w1, monkeypatch):
    StageFactory(job=job, status="DONE")
    before = columns_of(job)
    move = kernel.move

    def fails_for_documents(states, *args, **options):
        if states is lifecycle.DOCUMENT_STATES:
            raise RuntimeError
        return move(states, *args, **options)

    monkeypatch.setattr(kernel, "move", fails_for_documents)

    with pytest.raises(RuntimeError):
        lifecycle.settle(job, actor=w1)

    assert columns_of(job) == before


@pytest.mark.parametrize("status", ["NEW", "READY", "RUNNING"])
def test_a_job_with_a_stage_under_way_is_not_settled(job, status, w1):
    StageFactory(job=job, status="DONE")
    StageFactory(job=job, status=status)
    before = columns_of(job)

    assert not lifecycle.settle(job, actor=w1)

    assert columns_of(job) == before


def test_a_job_without_stages_is_not_settled(job, w1):
    assert not lifecycle.settle(job, actor=w1)


def test_a_stage_that_is_laid_out_meanwhile_keeps_the_job_from_completing(job, w1, monkeypatch):
    StageFactory(job=job, status="DONE")
    lock = lifecycle._lock_live

    def planned_meanwhile(job_id):
        StageFactory(job=job)
        return lock(job_id)

    monkeypatch.setattr(lifecycle, "_lock_live", planned_meanwhile)

    assert not lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert (job.status, job.document.status) == ("PROCESSING", "processing")


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_a_job_that_has_ended_is_not_planned(status, w1):
    job = JobFactory(status=status)

    assert not lifecycle.plan(job.pk, 3, actor=w1)

    assert not Stage.objects.filter(job=job).exists()


@pytest.mark.parametrize("status", ["PENDING", "COMPLETED", "FAILED"])
def test_a_job_that_is_not_under_way_is_not_settled(status, w1):
    job = JobFactory(status=status)
    StageFactory(job=job, status="DONE")
    before = columns_of(job)

    assert not lifecycle.settle(job, actor=w1)

    assert columns_of(job) == before


def test_a_failed_stage_sends_the_job_back_for_another_attempt(job, w1):
    stage = StageFactory(job=job, status="ERROR")
    StageFactory(job=job, status="READY")
    before = clock.now()

    assert lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert (job.status, job.attempts, job.document.status) == ("PENDING", 1, "processing")
    assert (job.started_at, job.finished_at) == (None, None)
    assert before + timedelta(seconds=2.5) <= job.next_attempt_at <= clock.now() + timedelta(seconds=5)
    assert job.error_message == f"{stage}: no text"
    assert job.error_log.endswith(f" attempt 1: {stage}: no text\n")
    event = events_of(job).last()
    assert (event.kind, event.from_status, event.to_status) == ("JOB_POSTPONED", "PROCESSING", "PENDING")


def test_the_wish_of_a_server_to_be_asked_later_is_heard(job, w1):
    stage = StageFactory(job=job, status="RUNNING")
    lifecycle.fail_stage(claim_of(stage), "EXTRACTION_FAILED", "the server was busy", retry_after=300)

    lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert timedelta(seconds=299) < job.next_attempt_at - clock.now() <= timedelta(seconds=300)


def test_a_stage_that_is_still_worked_at_is_waited_for(job, w1):
    StageFactory(job=job, status="ERROR")
    running = StageFactory(job=job, status="RUNNING")

    assert not lifecycle.settle(job, actor=w1)
    lifecycle.fail_stage(claim_of(running), "EXTRACTION_FAILED", "too many requests", retry_after=600)
    assert lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert job.error_message.endswith("no text")
    assert timedelta(seconds=599) < job.next_attempt_at - clock.now() <= timedelta(seconds=600)


def test_what_no_attempt_will_cure_decides_among_several(job, w1):
    StageFactory(job=job, status="ERROR")
    running = StageFactory(job=job, status="RUNNING")
    lifecycle.fail_stage(claim_of(running), lifecycle.SERVICE_REFUSED, "the key is wrong")

    assert lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert (job.status, job.failure_type, job.attempts) == ("FAILED", lifecycle.SERVICE_REFUSED, 1)
    assert job.error_message.endswith("the key is wrong")


def test_the_last_attempt_fails_the_job_and_its_document(job, w1):
    StageFactory(job=job, status="ERROR")
    write(job, attempts=2, error_log="attempt 1: x\nattempt 2: y\n")

    assert lifecycle.settle(job, actor=w1)

    job.refresh_from_db()
    assert (job.status, job.attempts, job.document.status) == ("FAILED", 3, "failed")
    assert (job.failure_type, job.completed_at) == ("ATTEMPTS_EXHAUSTED", None)
    assert [line.split(": ")[0][-9:] for line in job.error_log.splitlines()] == ["attempt 1", "attempt 2", "attempt 3"]
    assert (told(job)[-1], told(job.document)[-1]) == ("JOB_FAILED", "DOCUMENT_FAILED")


def test_two_who_see_the_same_failure_count_it_once(job, w1, w2):
    StageFactory(job=job, status="ERROR")
    seen_by_another = DocumentProcessingJob.objects.get()

    assert lifecycle.settle(job, actor=w1)
    force_status(job, "PROCESSING", attempts=1)

    assert not lifecycle.settle(seen_by_another, actor=w2)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("PROCESSING", 1)


def test_a_job_that_always_fails_is_tried_as_often_as_its_limit_says(w1):
    job = JobFactory(max_attempts=2)
    lifecycle.plan(job.pk, 1, actor=w1)
    attempts = 0

    while claim := lifecycle.begin_next_job(w1):
        attempts += 1
        lifecycle.advance(claim.id, actor=w1)
        lifecycle.fail_stage(lifecycle.claim_stage(w1), "EXTRACTION_FAILED", "no text")
        lifecycle.settle(DocumentProcessingJob.objects.get(), actor=w1)
        write(job, next_attempt_at=clock.now())

    assert (attempts, job.attempts, job.status) == (2, 2, "FAILED")
