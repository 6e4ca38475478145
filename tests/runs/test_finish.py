import pytest

from runs import lifecycle
from tests.factories import RunFactory, and_told, claim_of, columns_of, events_of, expire_lease, told, write
from work import clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return RunFactory(status="running")


FINISHES = {
    "succeed": lambda claim: lifecycle.succeed(claim),
    "fail": lambda claim: lifecycle.fail(claim, "ENGINE_FAILED", "exit code 1"),
    "stop": lambda claim: lifecycle.stop(claim),
}


def test_a_run_succeeds(run):
    before = clock.now()

    assert lifecycle.succeed(claim_of(run), data={"steps": 2})

    run.refresh_from_db()
    assert (run.status, run.outcome, run.failure_type) == ("succeeded", "succeeded", "")
    assert (run.lease_owner, run.lease_expires_at, run.process) == (None, None, None)
    assert before <= run.finished_at <= clock.now()
    event = events_of(run).last()
    assert (event.kind, event.from_status, event.to_status) == ("RUN_SUCCEEDED", "running", "succeeded")
    assert (event.actor, event.claim_token, event.data) == ("w1@here:101:boot1", 1, {"steps": 2})


def test_a_run_fails_with_its_reason(run):
    assert lifecycle.fail(claim_of(run), "ENGINE_FAILED", "exit code 1")

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.error_message) == ("failed", "ENGINE_FAILED", "exit code 1")
    event = events_of(run).last()
    assert (event.kind, event.to_status, event.message, event.level) == ("RUN_FAILED", "failed", "exit code 1", 30)


def test_a_run_that_timed_out_has_failed_with_an_outcome_of_its_own(run):
    lifecycle.fail(claim_of(run), "TIMED_OUT", "longer than 120 s")

    run.refresh_from_db()
    assert (run.status, run.outcome) == ("failed", "timed_out")


def test_a_run_that_was_asked_to_end_is_stopped(run):
    lifecycle.cancel(run, actor="olga")

    assert lifecycle.stop(claim_of(run))

    run.refresh_from_db()
    assert (run.status, run.lease_owner, run.failure_type) == ("cancelled", None, "")
    event = events_of(run).last()
    assert (event.kind, event.from_status, event.to_status) == ("RUN_CANCELLED", "running", "cancelled")


def test_a_run_that_nobody_asked_to_end_is_not_stopped(run):
    before = columns_of(run)

    assert not lifecycle.stop(claim_of(run))

    assert columns_of(run) == before


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("status", ["queued", "succeeded", "failed", "cancelled"])
def test_a_run_that_is_not_running_cannot_be_finished(finish, status):
    run = RunFactory(status=status)
    before = columns_of(run)

    assert not finish(claim_of(run, owner="w9"))

    assert columns_of(run) == and_told(before, run, None)
    assert set(told(run)[before["last_sequence"] :]) == {"LATE_WRITE_REFUSED"}


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("stale", [{"owner": "w2@here:102:boot2"}, {"token": 0}, {"token": 2}])
def test_nobody_but_its_holder_finishes_a_run(run, finish, stale):
    before = columns_of(run)

    assert not finish(claim_of(run, **stale))

    assert columns_of(run) == and_told(before, run, None)
    assert "LATE_WRITE_REFUSED" in told(run)


def test_a_refused_finish_says_what_was_refused_and_what_was_found(run):
    stale = claim_of(run, owner="w2@here:102:boot2")

    lifecycle.succeed(stale)

    event = events_of(run).last()
    assert (event.kind, event.level, event.actor) == ("LATE_WRITE_REFUSED", 30, "w2@here:102:boot2")
    assert event.message == "succeed came too late: the row is running under claim 1"
    assert event.data == {
        "refused": "succeed",
        "token": 1,
        "found": {"status": "running", "lease_owner": "w1@here:101:boot1", "claim_token": 1},
    }
    assert stale.lost.is_set()


def test_a_refused_finish_is_told_once(run):
    lifecycle.succeed(claim_of(run, owner="w2@here:102:boot2"))

    assert told(run).count("LATE_WRITE_REFUSED") == 1


@pytest.mark.parametrize("finish", ["succeed", "fail"])
def test_a_finish_whose_answer_was_lost_is_answered_again(run, finish):
    claim = claim_of(run)
    assert FINISHES[finish](claim)
    before = columns_of(run)

    assert FINISHES[finish](claim)

    assert columns_of(run) == before


def test_a_finish_is_not_taken_for_that_of_another_verb(run):
    claim = claim_of(run)
    lifecycle.fail(claim, "ENGINE_FAILED", "exit code 1")

    assert not lifecycle.succeed(claim)

    run.refresh_from_db()
    assert run.status == "failed"


def test_a_holder_whose_lease_ran_out_still_finishes_while_nobody_has_taken_its_run(run):
    claim = claim_of(run)
    expire_lease(run, 3600)

    assert lifecycle.succeed(claim)


def test_the_end_of_a_run_is_not_before_its_start(run):
    write(run, created_at=clock.now().replace(year=2100), started_at=clock.now().replace(year=2100))

    assert lifecycle.succeed(claim_of(run))

    run.refresh_from_db()
    assert run.finished_at == run.started_at
