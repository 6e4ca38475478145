from datetime import timedelta

import pytest
from django.conf import settings

from documents import lifecycle
from documents.lifecycle import STAGE_LOSSES
from documents.models import Stage
from tests.factories import (
    W1,
    StageFactory,
    and_told,
    bring_to,
    claim_of,
    columns_of,
    events_of,
    expire_lease,
    told,
    write,
)
from tests.writers import WRITERS
from work import clock, recovery
from work import lifecycle as kernel
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind():
    return work_type_named("stage")


@pytest.fixture
def running():
    return StageFactory(status="RUNNING")


@pytest.mark.parametrize("writer", WRITERS)
def test_a_claim_starts_the_oldest_ready_stage_and_holds_it(writer, monkeypatch, w1):
    monkeypatch.setattr(kernel, "_writer", lambda: writer)
    younger, older = StageFactory.create_batch(2, status="READY")
    write(older, created_at=younger.created_at - timedelta(seconds=1))
    before = clock.now()

    claim = lifecycle.claim_stage(w1)

    older.refresh_from_db()
    assert (claim.id, claim.holder.owner, claim.holder.token) == (older.pk, w1, 1)
    assert claim.values == {"job_id": older.job_id, "name": older.name, "segment": older.segment}
    assert (older.status, older.lease_owner, older.claim_token) == ("RUNNING", w1, 1)
    assert older.lease_expires_at >= before + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    event = events_of(older).last()
    assert (event.kind, event.from_status, event.to_status) == ("STAGE_STARTED", "READY", "RUNNING")


@pytest.mark.parametrize("status", ["NEW", "RUNNING", "DONE", "ERROR"])
def test_only_a_ready_stage_is_claimed(status, w1):
    StageFactory(status=status)

    assert lifecycle.claim_stage(w1) is None


def test_a_stage_is_done_and_says_with_what(running):
    assert lifecycle.finish_stage(claim_of(running), data={"pages": 25})

    running.refresh_from_db()
    assert (running.status, running.lease_owner) == ("DONE", None)
    event = events_of(running).last()
    assert (event.kind, event.from_status, event.to_status) == ("STAGE_DONE", "RUNNING", "DONE")
    assert event.data == {"pages": 25}


def test_a_stage_fails_with_its_reason(running):
    assert lifecycle.fail_stage(claim_of(running), "EXTRACTION_FAILED", "no text")

    running.refresh_from_db()
    assert (running.status, running.failure_type, running.error_message) == ("ERROR", "EXTRACTION_FAILED", "no text")
    event = events_of(running).last()
    assert (event.kind, event.to_status, event.message) == ("STAGE_FAILED", "ERROR", "no text")


FINISHES = {
    "finish": lifecycle.finish_stage,
    "fail": lambda claim: lifecycle.fail_stage(claim, "EXTRACTION_FAILED", "no text"),
}


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("status", ["NEW", "READY", "DONE", "ERROR"])
def test_a_stage_that_is_not_running_cannot_be_finished(finish, status):
    stage = StageFactory(status=status)
    before = columns_of(stage)

    assert not finish(claim_of(stage, owner="w9"))

    assert columns_of(stage) == and_told(before, stage, None)


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_the_first_claim_of_a_worker_that_claimed_its_stage_again_is_refused(kind, finish, w1, w2):
    StageFactory(status="READY")
    first = lifecycle.claim_stage(w1)
    stage = expire_lease(Stage.objects.get())
    recovery.rescue_expired([kind], w2)
    second = lifecycle.claim_stage(w1)

    assert not finish(first)

    assert (first.holder.owner, first.holder.token, second.holder.token) == (second.holder.owner, 1, 2)
    event = events_of(stage).last()
    assert (event.kind, event.claim_token, event.data["token"]) == ("LATE_WRITE_REFUSED", 2, 1)
    assert first.lost.is_set()
    assert finish(second)


def test_finishing_a_stage_moves_nothing_behind_it(running):
    later = StageFactory(job=running.job, name="embed")
    before = columns_of(later), columns_of(running.job)

    lifecycle.finish_stage(claim_of(running))

    assert (columns_of(later), columns_of(running.job)) == before


def test_a_stage_whose_worker_is_lost_is_ready_again(kind, running, w2):
    expire_lease(running)

    assert recovery.rescue_expired([kind], w2) == 1

    running.refresh_from_db()
    assert (running.status, running.losses, running.error_message) == ("READY", 1, recovery.EXPIRED)
    assert (running.lease_owner, running.lease_expires_at, running.started_at) == (None, None, None)
    assert told(running)[-2:] == ["STAGE_RELEASED", "RECOVERED"]


def test_a_stage_that_costs_too_many_workers_fails(kind, w1, w2):
    StageFactory(status="READY")

    for _ in range(STAGE_LOSSES):
        assert lifecycle.claim_stage(w1)
        expire_lease(Stage.objects.get())
        recovery.rescue_expired([kind], w2)

    stage = Stage.objects.get()
    assert (stage.status, stage.failure_type, stage.losses) == ("ERROR", "PROCESS_TERMINATED", STAGE_LOSSES)
    assert stage.error_message == f"{recovery.EXPIRED}; {STAGE_LOSSES} workers were lost while processing it"
    assert told(stage)[-2:] == ["STAGE_ABANDONED", "RECOVERED"]


def test_a_worker_that_is_told_to_stop_is_no_loss(kind, running, w1):
    write(running, losses=STAGE_LOSSES - 1)

    assert recovery.release(kind, claim_of(running), w1)

    running.refresh_from_db()
    assert (running.status, running.losses) == ("READY", STAGE_LOSSES - 1)


@pytest.mark.parametrize("status", ["NEW", "READY", "DONE", "ERROR"])
def test_a_stage_that_nobody_holds_is_left_alone(kind, status, w2):
    stage = StageFactory(status=status)
    before = columns_of(stage)

    assert recovery.rescue_expired([kind], w2) == 0

    assert columns_of(stage) == before


def test_a_ready_stage_of_a_job_that_is_not_under_way_is_left_alone():
    stage = StageFactory(status="READY", job__status="PENDING")

    assert lifecycle.claim_stage(W1) is None

    bring_to(stage.job, "PROCESSING")
    assert lifecycle.claim_stage(W1).id == stage.pk
