"""A document that kills every worker that processes it."""

import pytest

from documents import lifecycle
from documents.models import DocumentProcessingJob, Stage
from documents.work_types import STAGE
from tests.factories import JobFactory, age, events_of, expire_lease, told, write
from work import clock, recovery

pytestmark = pytest.mark.django_db


@pytest.fixture
def poison(w1):
    """A job with the defaults: more attempts than the number of workers that a document may cost."""
    job = JobFactory(max_attempts=20)
    lifecycle.plan(job.pk, 2, actor=w1)
    return job


def begin(job, w1):
    write(job, next_attempt_at=clock.now())
    assert lifecycle.begin_next_job(w1).id == job.pk
    lifecycle.advance(job.pk, actor=w1)
    job.refresh_from_db()


def kill(w1, w2):
    """Lose the worker that claims the next ready stage."""
    claim = lifecycle.claim_stage(w1)
    expire_lease(Stage.objects.get(pk=claim.id))
    assert recovery.rescue_expired([STAGE], w2) == 1


def end_of(job):
    job.refresh_from_db()
    return job.status, job.attempts, job.failure_type, job.document.status


def test_it_fails_at_the_ninth_worker_whatever_the_attempts(poison, w1, w2):
    deaths = 0

    while poison.status not in poison.TERMINAL:
        if poison.status == "PENDING":
            begin(poison, w1)
        kill(w1, w2)
        deaths += 1
        lifecycle.settle(poison, actor=w1)
        poison.refresh_from_db()

    assert (deaths, end_of(poison)) == (9, ("FAILED", 3, "PROCESS_TERMINATED", "failed"))
    counted = [line.split(": ", 1)[1].split("; ")[1] for line in poison.error_log.splitlines()]
    assert counted == [f"{number} workers were lost while processing it" for number in (3, 6, 9)]
    stage = Stage.objects.get(name="extract", segment=0)
    assert (stage.status, stage.losses) == ("ERROR", 9)
    assert told(stage).count("STAGE_ABANDONED") == 3
    assert told(poison)[-1] == "JOB_FAILED"


def test_it_fails_at_the_ninth_worker_too_when_the_watchdog_gives_it_back(poison, w1, w2, settings):
    """After each loss, no worker runs for a long time."""
    deaths = 0

    while poison.status not in poison.TERMINAL and deaths < 20:
        begin(poison, w1)
        kill(w1, w2)
        deaths += 1
        for row in (poison, *Stage.objects.filter(status="ERROR")):
            age(row, settings.ADE_ZOMBIE_SECONDS + 1)
        assert lifecycle.reset_zombies(w1) == 1
        poison.refresh_from_db()

    assert (deaths, end_of(poison)) == (9, ("FAILED", 9, "PROCESS_TERMINATED", "failed"))
    assert told(poison)[-1] == "JOB_GIVEN_UP"


def test_workers_that_are_told_to_stop_are_no_losses_and_no_attempts(poison, w1, settings):
    begin(poison, w1)
    for _ in range(10):
        assert recovery.release(STAGE, lifecycle.claim_stage(w1), w1)
    age(poison, settings.ADE_ZOMBIE_SECONDS + 1)

    assert lifecycle.reset_zombies(w1) == 1

    assert end_of(poison) == ("PENDING", 0, "", "processing")
    stage = Stage.objects.get(name="extract", segment=0)
    assert (stage.status, stage.losses, stage.error_message) == ("READY", 0, "")
    assert events_of(stage).filter(kind="STAGE_RELEASED").first().message == recovery.STOPPED


def test_a_document_that_is_sound_again_is_processed_with_the_losses_it_had(poison, w1, w2):
    begin(poison, w1)
    for _ in range(3):
        kill(w1, w2)
    assert lifecycle.settle(poison, actor=w1)
    begin(poison, w1)
    kill(w1, w2)

    while claim := lifecycle.claim_stage(w1):
        lifecycle.finish_stage(claim)
        lifecycle.advance(poison.pk, actor=w1)
    assert lifecycle.settle(DocumentProcessingJob.objects.get(), actor=w1)

    assert end_of(poison) == ("COMPLETED", 1, "", "processed")
    assert Stage.objects.get(name="extract", segment=0).losses == 4
