from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from schedules import job_runs
from schedules.job_runs import Refusal
from schedules.models import JobRun
from tests.factories import (
    JobRunFactory,
    age,
    and_told,
    claim_of,
    columns_of,
    events_of,
    expire_lease,
    told,
    write,
)
from work import boots, clock, recovery
from work.work_types import work_type_named

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Larger than any PID on Linux.
NO_PID = 2**22 + 1

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind():
    return work_type_named("job_run")


@pytest.fixture
def running():
    return JobRunFactory(job_name="ingest", scheduled_for=NOON)


def test_a_slot_is_claimed_by_its_row(w1, settings):
    before = clock.now()

    claim = job_runs.claim_slot("ingest", NOON, w1)

    row = JobRun.objects.get()
    assert (claim.id, claim.holder.owner, claim.holder.token) == (row.pk, w1, 1)
    assert (row.job_name, row.scheduled_for, row.status) == ("ingest", NOON, "running")
    assert (row.lease_owner, row.claim_token, row.worker_instance) == (w1, 1, w1)
    assert row.created_at <= row.started_at
    assert row.lease_expires_at >= before + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    event = events_of(row).get()
    assert (event.kind, event.to_status, event.actor, event.claim_token) == ("SLOT_CLAIMED", "running", w1, 1)


def test_a_slot_that_is_running_is_taken(running, w2):
    before = columns_of(running)

    assert job_runs.claim_slot("ingest", NOON, w2) is Refusal.SLOT_TAKEN

    assert columns_of(running) == before
    assert JobRun.objects.count() == 1


@pytest.mark.parametrize("status", ["success", "failed", "skipped_timeout"])
def test_a_slot_that_has_ended_stays_taken(status, w2):
    JobRunFactory(job_name="ingest", scheduled_for=NOON, status=status)

    assert job_runs.claim_slot("ingest", NOON, w2) is Refusal.SLOT_TAKEN


def test_a_job_that_is_running_gets_no_second_slot(running, w2):
    assert job_runs.claim_slot("ingest", NOON + HOUR, w2) is Refusal.JOB_RUNNING

    assert JobRun.objects.count() == 1


@pytest.mark.parametrize("status", ["success", "failed", "skipped_timeout"])
def test_a_job_that_has_ended_gets_its_next_slot(status, w2):
    JobRunFactory(job_name="ingest", scheduled_for=NOON, status=status)

    assert job_runs.claim_slot("ingest", NOON + HOUR, w2).holder.owner == w2


def test_other_jobs_have_slots_of_their_own(running, w2):
    assert job_runs.claim_slot("cluster", NOON, w2).holder.owner == w2


def test_the_words_of_a_refusal_are_those_of_the_contract():
    assert [str(refusal) for refusal in Refusal] == ["slot_already_claimed", "job_already_running"]


def test_an_owner_with_a_long_name_claims_too():
    owner = f"{'w' * 150}@here:101:boot1"

    claim = job_runs.claim_slot("ingest", NOON, owner)

    row = JobRun.objects.get()
    assert (row.lease_owner, row.worker_instance) == (owner, owner[:128])
    assert job_runs.succeed(claim)


def test_a_slot_succeeds(running):
    assert job_runs.succeed(claim_of(running), rows_processed=7)

    running.refresh_from_db()
    assert (running.status, running.rows_processed, running.lease_owner) == ("success", 7, None)
    event = events_of(running).last()
    assert (event.kind, event.from_status, event.to_status) == ("SLOT_SUCCEEDED", "running", "success")


def test_a_slot_fails_with_its_reason(running):
    assert job_runs.fail(claim_of(running), "feed unreachable")

    running.refresh_from_db()
    assert (running.status, running.error_message) == ("failed", "feed unreachable")
    event = events_of(running).last()
    assert (event.kind, event.to_status, event.message) == ("SLOT_FAILED", "failed", "feed unreachable")


FINISHES = {"succeed": job_runs.succeed, "fail": lambda claim: job_runs.fail(claim, "feed unreachable")}


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("status", ["success", "failed", "skipped_timeout"])
def test_a_slot_that_has_ended_cannot_be_finished(finish, status):
    row = JobRunFactory(status=status)
    before = columns_of(row)

    assert not finish(claim_of(row, owner="w9"))

    assert columns_of(row) == and_told(before, row, None)


def test_a_slot_that_runs_for_too_long_is_given_up(running, w2):
    age(running, 7201)

    assert job_runs.skip_stale("ingest", 2 * HOUR, actor=w2) == 1

    running.refresh_from_db()
    assert (running.status, running.error_message) == ("skipped_timeout", "running for longer than 7200 s")
    assert (running.lease_owner, running.lease_expires_at) == (None, None)
    assert running.finished_at is not None
    event = events_of(running).last()
    assert (event.kind, event.to_status, event.actor) == ("SLOT_ABANDONED", "skipped_timeout", w2)


def test_a_slot_within_its_time_is_left_alone(running, w2):
    age(running, 7190)
    before = columns_of(running)

    assert job_runs.skip_stale("ingest", 2 * HOUR, actor=w2) == 0

    assert columns_of(running) == before


def test_the_slots_of_other_jobs_are_left_alone(w2):
    other = age(JobRunFactory(job_name="cluster"), 86400)

    assert job_runs.skip_stale("ingest", 2 * HOUR, actor=w2) == 0

    assert JobRun.objects.get(pk=other.pk).status == "running"


@pytest.mark.parametrize("status", ["success", "failed"])
def test_a_slot_that_has_ended_is_not_given_up(status, w2):
    row = age(JobRunFactory(job_name="ingest", status=status), 86400)
    before = columns_of(row)

    assert job_runs.skip_stale("ingest", 2 * HOUR, actor=w2) == 0

    assert columns_of(row) == before


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_the_worker_of_a_slot_that_was_given_up_is_refused_when_it_comes_back(running, finish, w2):
    claim = claim_of(age(running, 7201))
    job_runs.skip_stale("ingest", 2 * HOUR, actor=w2)

    assert not finish(claim)

    running.refresh_from_db()
    assert running.status == "skipped_timeout"
    assert told(running) == ["SLOT_CLAIMED", "SLOT_ABANDONED", "LATE_WRITE_REFUSED"]


def test_a_slot_that_finished_first_is_not_given_up(running, w2):
    job_runs.succeed(claim_of(age(running, 7201)))

    assert job_runs.skip_stale("ingest", 2 * HOUR, actor=w2) == 0

    running.refresh_from_db()
    assert running.status == "success"


def test_the_next_slot_is_free_when_a_stale_one_was_given_up(running, w2):
    age(running, 7201)
    job_runs.skip_stale("ingest", 2 * HOUR, actor=w2)

    assert job_runs.claim_slot("ingest", NOON + HOUR, w2).holder.owner == w2


def test_a_slot_whose_worker_is_lost_has_failed(running, kind, w2):
    expire_lease(running)

    assert recovery.rescue_expired([kind], w2) == 1

    running.refresh_from_db()
    assert (running.status, running.error_message) == ("failed", recovery.EXPIRED)
    assert told(running) == ["SLOT_CLAIMED", "SLOT_FAILED", "RECOVERED"]


def test_a_slot_that_an_earlier_boot_left_has_failed_in_the_words_of_the_contract(running, kind, w1, w2):
    assert recovery.rescue_owned_by([kind], [w1], recovery.EARLIER_BOOT, w2) == 1

    running.refresh_from_db()
    assert (running.status, running.error_message) == ("failed", "worker_startup_recovery")


def test_a_start_logs_how_many_slots_an_earlier_boot_had_left(kind):
    earlier = write(boots.register("w1", "b1", {}), pid=NO_PID)
    left = [JobRunFactory(job_name=name, owner=earlier.owner) for name in ("ingest", "cluster")]
    JobRunFactory(job_name="brief", owner="w2@here:1:b1")
    now = boots.register("w1", "b2", {})

    with capture_logs() as lines:
        assert boots.recover_earlier(now, [kind]) == 2

    told_last = {"event": "worker.recovered", "owner": now.owner, "dead_boots": [earlier.owner], "moved": 2}
    assert lines[-1] == {**told_last, "log_level": "info"}
    found = JobRun.objects.filter(pk__in=[row.pk for row in left]).values_list("status", "error_message")
    assert set(found) == {("failed", "worker_startup_recovery")}
    assert JobRun.objects.get(status="running").job_name == "brief"


def test_a_slot_whose_worker_lives_is_left_alone(running, kind, w2):
    before = columns_of(running)

    assert recovery.rescue_expired([kind], w2) == 0
    assert recovery.rescue_owned_by([kind], [w2], recovery.EARLIER_BOOT, w2) == 0

    assert columns_of(running) == before


def test_a_slot_is_never_claimed_again_after_its_rescue(running, kind, w2):
    expire_lease(running)
    recovery.rescue_expired([kind], w2)

    assert job_runs.claim_slot("ingest", NOON, w2) is Refusal.SLOT_TAKEN
