import pytest

from runs import lifecycle
from tests.factories import RunFactory, age, claim_of, columns_of, events_of, expire_lease, told, write
from work import clock, recovery
from work.models import Worker
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind():
    return work_type_named("run")


def over_budget(run, settings):
    return age(run, settings.ADE_RUN_TIMEOUT_SECONDS + settings.ADE_LEASE_SECONDS + 1)


def test_a_run_whose_worker_is_lost_has_failed(kind, w2):
    run = expire_lease(RunFactory(status="running"))

    assert recovery.rescue_expired([kind], w2) == 1

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.error_message) == ("failed", "PROCESS_TERMINATED", recovery.EXPIRED)
    assert (run.lease_owner, run.lease_expires_at, run.process) == (None, None, None)
    assert told(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED", "RECOVERED"]


def test_a_run_whose_lease_holds_is_left_alone(kind, w2):
    run = RunFactory(status="running")
    before = columns_of(run)

    assert recovery.rescue_expired([kind], w2) == 0

    assert columns_of(run) == before


@pytest.mark.parametrize("status", ["queued", "succeeded", "failed", "cancelled"])
def test_a_run_that_nobody_holds_is_left_alone(kind, status, w2):
    run = age(RunFactory(status=status), 86400)
    before = columns_of(run)

    assert recovery.rescue_expired([kind], w2) == 0

    assert columns_of(run) == before


def test_a_run_over_its_budget_has_timed_out_although_its_worker_lives(kind, settings, w2):
    run = over_budget(RunFactory(status="running"), settings)
    write(run, lease_expires_at=clock.now().replace(year=2100))

    assert recovery.rescue_expired([kind], w2) == 1

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.outcome) == ("failed", "TIMED_OUT", "timed_out")
    assert run.error_message == recovery.OVER_BUDGET


def test_a_run_within_its_budget_and_the_grace_of_its_worker_goes_on(kind, settings, w2):
    run = age(RunFactory(status="running"), settings.ADE_RUN_TIMEOUT_SECONDS + settings.ADE_LEASE_SECONDS - 2)
    write(run, lease_expires_at=clock.now().replace(year=2100))

    assert recovery.rescue_expired([kind], w2) == 0


@pytest.mark.parametrize("lost", [expire_lease, over_budget])
def test_an_accepted_cancel_is_honoured(kind, lost, settings, w2):
    run = RunFactory(status="running")
    lifecycle.cancel(run, actor="olga")
    expire_lease(run) if lost is expire_lease else over_budget(run, settings)

    assert recovery.rescue_expired([kind], w2) == 1

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.error_message) == ("cancelled", "", "")
    assert told(run)[-2:] == ["RUN_CANCELLED", "RECOVERED"]


def test_a_run_is_moved_on_once(kind, w2):
    run = expire_lease(RunFactory(status="running"))
    recovery.rescue_expired([kind], w2)
    before = columns_of(run)

    assert recovery.rescue_expired([kind], "w3@here:103:boot3") == 0

    assert columns_of(run) == before


def test_the_lost_worker_that_comes_back_is_refused(kind, w2):
    run = expire_lease(RunFactory(status="running"))
    claim = claim_of(run)
    recovery.rescue_expired([kind], w2)

    assert not lifecycle.succeed(claim)

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("failed", "PROCESS_TERMINATED")
    assert told(run)[-1] == "LATE_WRITE_REFUSED"


@pytest.mark.parametrize("cancelled", [False, True])
def test_the_next_run_of_the_document_can_start_at_once(kind, cancelled, w2):
    lost = expire_lease(RunFactory(status="running"))
    waiting = RunFactory(configuration=lost.configuration, input_document=lost.input_document)
    assert waiting.gate == "document"
    if cancelled:
        lifecycle.cancel(lost, actor="olga")

    recovery.rescue_expired([kind], w2)

    assert lifecycle.claim_next_run(w2).id == waiting.pk


def test_a_receipt_says_what_was_found_and_by_which_rule(kind, w1, w2):
    run = expire_lease(RunFactory(status="running"), 60)
    seen = clock.now()
    row = {"name": "w1", "host": "here", "machine": "m", "pid": 101, "pid_started": 1, "boot_id": "boot1"}
    Worker.objects.create(**row, started_at=seen, heartbeat_at=seen)

    recovery.rescue_expired([kind], w2)

    receipt = events_of(run).last()
    assert (receipt.kind, receipt.actor, receipt.level) == ("RECOVERED", w2, 30)
    assert (receipt.from_status, receipt.to_status) == ("", "")
    assert receipt.message == f"orphan: {w1} is gone, {recovery.EXPIRED}"
    assert receipt.data == {
        "owner": w1,
        "claim_token": 1,
        "lease_expired_at": run.lease_expires_at.isoformat(),
        "last_heartbeat_at": seen.isoformat(),
        "process": "none recorded",
        "rule": recovery.EXPIRED,
        "verb": "orphan",
    }


def test_a_run_whose_worker_left_no_row_is_moved_on_all_the_same(kind, w2):
    run = expire_lease(RunFactory(status="running"))
    assert not Worker.objects.exists()

    assert recovery.rescue_expired([kind], w2) == 1

    assert events_of(run).last().data["last_heartbeat_at"] is None


def test_what_a_stopped_worker_gives_back_has_failed(kind, w1):
    run = RunFactory(status="running")

    assert recovery.release(kind, claim_of(run), w1)

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.error_message) == ("failed", "PROCESS_TERMINATED", recovery.STOPPED)


def test_what_is_no_longer_its_own_a_stopped_worker_does_not_give_back(kind, w2):
    run = RunFactory(status="running")
    before = columns_of(run)

    assert not recovery.release(kind, claim_of(run, owner=w2), w2)

    assert columns_of(run) == before
