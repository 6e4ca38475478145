import pytest

from runs import lifecycle
from runs.models import Run
from tests.factories import ErrandFactory, RunFactory, age, claim_of, columns_of, events_of, expire_lease, told
from tests.testwork.lifecycle import ERRAND
from work import clock, recovery
from work import lifecycle as kernel
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db


def test_a_queued_run_is_cancelled_at_once():
    run = RunFactory()

    assert lifecycle.cancel(run, actor="olga", reason="wrong document") == "cancelled"

    run.refresh_from_db()
    assert (run.status, run.started_at, run.claim_token) == ("cancelled", None, 0)
    assert run.finished_at is not None
    event = events_of(run).last()
    assert (event.kind, event.from_status, event.to_status) == ("RUN_CANCELLED", "queued", "cancelled")
    assert (event.actor, event.message) == ("olga", "wrong document")


@pytest.mark.parametrize("gate", ["build", "document"])
def test_a_run_behind_a_gate_is_cancelled_at_once(gate):
    assert lifecycle.cancel(RunFactory(gate=gate), actor="olga") == "cancelled"


def test_the_holder_of_a_running_run_is_asked():
    run = RunFactory(status="running")

    assert lifecycle.cancel(run, actor="olga", reason="wrong document") == "running"

    run.refresh_from_db()
    assert (run.status, run.cancel_requested_by) == ("running", "olga")
    assert run.cancel_requested_at <= clock.now()
    event = events_of(run).last()
    assert (event.kind, event.from_status, event.to_status) == ("RUN_CANCEL_REQUESTED", "running", "running")
    assert (event.actor, event.message) == ("olga", "wrong document")


def test_a_request_does_not_touch_the_lease():
    run = RunFactory(status="running")
    lease = run.lease_owner, run.lease_expires_at, run.claim_token

    lifecycle.cancel(run, actor="olga")

    run.refresh_from_db()
    assert (run.lease_owner, run.lease_expires_at, run.claim_token) == lease


def test_the_second_request_changes_nothing():
    run = RunFactory(status="running")
    lifecycle.cancel(run, actor="olga")
    before = columns_of(run)

    assert lifecycle.cancel(run, actor="ravi") == "running"

    assert columns_of(run) == before


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_an_ended_run_answers_its_status_and_stays_as_it_is(status):
    run = RunFactory(status=status)
    before = columns_of(run)

    assert lifecycle.cancel(run, actor="olga") == status

    assert columns_of(run) == before


@pytest.mark.parametrize("finish", ["succeed", "fail"])
def test_a_finish_after_an_accepted_cancel_ends_cancelled(finish):
    run = RunFactory(status="running")
    claim = claim_of(run)
    lifecycle.cancel(run, actor="olga")

    if finish == "succeed":
        assert not lifecycle.succeed(claim)
    else:
        assert not lifecycle.fail(claim, "ENGINE_FAILED", "exit code 1")

    run.refresh_from_db()
    assert (run.status, run.failure_type, run.error_message) == ("cancelled", "", "")
    assert told(run)[-2:] == ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]


@pytest.mark.parametrize("finish", ["succeed", "fail"])
def test_a_cancel_after_the_finish_answers_how_it_ended(finish):
    run = RunFactory(status="running")
    if finish == "succeed":
        assert lifecycle.succeed(claim_of(run))
    else:
        assert lifecycle.fail(claim_of(run), "ENGINE_FAILED", "exit code 1")

    assert lifecycle.cancel(run, actor="olga") == {"succeed": "succeeded", "fail": "failed"}[finish]

    run.refresh_from_db()
    assert run.cancel_requested_at is None


def test_an_accepted_cancel_binds_when_the_worker_is_lost(w2):
    run = expire_lease(RunFactory(status="running"))
    lifecycle.cancel(run, actor="olga")

    recovery.rescue_expired([work_type_named("run")], w2)

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("cancelled", "")


def test_an_accepted_cancel_binds_when_the_run_is_over_its_budget(w2, settings):
    run = age(RunFactory(status="running"), settings.ADE_RUN_TIMEOUT_SECONDS + settings.ADE_LEASE_SECONDS + 1)
    lifecycle.cancel(run, actor="olga")

    recovery.rescue_expired([work_type_named("run")], w2)

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("cancelled", "")


def test_work_that_is_put_back_between_the_two_looks_of_a_cancel_is_cancelled_all_the_same(monkeypatch):
    errand = ErrandFactory(status="doing")
    move = kernel.move

    def released_meanwhile(states, id, verb, **options):
        if verb == "request_cancel":
            move(states, id, "release")
        return move(states, id, verb, **options)

    monkeypatch.setattr(kernel, "move", released_meanwhile)

    assert kernel.cancel(ERRAND, errand.pk, actor="olga") == "cancelled"


def test_a_run_that_is_gone_cannot_be_cancelled():
    run = RunFactory()
    Run.objects.filter(pk=run.pk).delete()

    with pytest.raises(Run.DoesNotExist):
        lifecycle.cancel(run, actor="olga")


def test_a_cancelled_run_lets_the_next_one_of_its_document_come_forward():
    first = RunFactory()
    second = RunFactory(configuration=first.configuration, input_document=first.input_document)
    assert second.gate == "document"

    lifecycle.cancel(first, actor="olga")

    second.refresh_from_db()
    assert second.gate == ""
