"""A worker that has lost its claim comes back: its late writes change nothing, and are recorded."""

import time

import pytest

from builds import lifecycle as builds
from runs import lifecycle as runs
from runs.models import Artifact
from schedules import job_runs
from tests.factories import (
    W1,
    W2,
    BuildFactory,
    ErrandFactory,
    JobRunFactory,
    RunFactory,
    StageFactory,
    and_told,
    claim_of,
    columns_of,
    expire_lease,
)
from tests.races.invariants import assert_all_hold
from tests.races.test_two_verbs_on_one_run import ARTIFACT
from tests.testwork import lifecycle as errands
from work import claims, leases, lifecycle, recovery
from work.changes import EventDraft
from work.clock import now
from work.models import Event
from work.work_types import all_work_types, work_type_named

pytestmark = pytest.mark.django_db(transaction=True)

LATE_WRITES = {
    "finish": lambda claim: lifecycle.finish(claim, "succeed", result="late"),
    "fail": lambda claim: errands.fail(claim, ValueError("late")),
    "renew": lambda claim: not lifecycle.renew(claim.holder.owner, [claim]),
    "record": lambda claim: lifecycle.record(claim.states, claim.id, "NOTED", claim=claim),
    "record_many": lambda claim: lifecycle.record_many(claim, [EventDraft("LOG", now(), message="a line")]),
}
late_writes = pytest.mark.parametrize("write", LATE_WRITES.values(), ids=LATE_WRITES)


def refusals(row):
    return Event.objects.filter(subject_id=row.pk, kind=lifecycle.LATE_WRITE_REFUSED)


def lost(row, by=W2):
    """Let the lease expire and have another worker recover the row."""
    expire_lease(row)
    assert recovery.rescue_expired(all_work_types(), by) == 1


@late_writes
def test_a_late_write_is_refused_while_the_row_waits_for_another_worker(write):
    row = ErrandFactory(status="doing", owner=W1)
    stale = claim_of(row)
    lost(row)
    before = columns_of(row)

    assert not write(stale)

    assert columns_of(row) == and_told(before, row)
    assert refusals(row).count() == 1
    assert stale.why_stop() == claims.LEASE_LOST
    assert_all_hold()


@late_writes
def test_a_late_write_is_refused_when_another_worker_has_claimed_the_row(write):
    row = ErrandFactory(status="doing", owner=W1)
    stale = claim_of(row)
    lost(row)
    errands.claim_next(W2)
    before = columns_of(row)

    assert not write(stale)

    assert columns_of(row) == and_told(before, row)
    assert refusals(row).count() == 1
    assert_all_hold()


@late_writes
@pytest.mark.parametrize("by", [W1, W2])
def test_a_late_write_is_refused_when_the_same_worker_has_claimed_the_row_again(write, by):
    row = ErrandFactory(status="doing", owner=W1)
    stale = claim_of(row)
    lost(row, by)
    again = errands.claim_next(W1)
    before = columns_of(row)

    assert not write(stale)

    assert (again.holder.owner, again.holder.token) == (W1, stale.holder.token + 1)
    assert columns_of(row) == and_told(before, row)
    assert refusals(row).get().data["token"] == stale.holder.token
    assert errands.succeed(again, "in time")
    assert_all_hold()


def test_a_renewal_tells_two_claims_of_one_worker_on_one_row_apart():
    row = ErrandFactory(status="doing", owner=W1)
    stale = claim_of(row)
    lost(row)
    again = errands.claim_next(W1)

    assert lifecycle.renew(W1, [stale, again]) == [stale]

    assert not stale.is_trusted()
    assert again.is_trusted()


@pytest.mark.parametrize("order", [list, reversed])
def test_a_look_tells_two_claims_of_one_worker_on_one_row_apart(order):
    row = ErrandFactory(status="doing", owner=W1)
    stale = claim_of(row)
    lost(row)
    again = errands.claim_next(W1)

    leases.check_claims(list(order([stale, again])))

    assert stale.lost.is_set()
    assert not again.lost.is_set()


def test_nothing_is_published_for_a_run_that_was_lost():
    run = RunFactory(status="running", owner=W1)
    stale = claim_of(run)
    lost(run)

    assert not runs.publish_artifact(stale, ARTIFACT)
    assert not runs.succeed(stale)

    assert not Artifact.objects.exists()
    assert refusals(run).count() == 2
    assert_all_hold()


@pytest.mark.parametrize(
    ("factory", "verb"),
    [
        (RunFactory, runs.succeed),
        (BuildFactory, builds.succeed),
        (StageFactory, lambda claim: lifecycle.finish(claim, "finish")),
        (JobRunFactory, job_runs.succeed),
    ],
)
def test_every_kind_refuses_a_late_end(factory, verb):
    model = factory._meta.model
    row = factory(status=model.CLAIMED, owner=W1)
    stale = claim_of(row)
    lost(row)
    before = columns_of(row)

    assert not verb(stale)

    assert columns_of(row) == and_told(before, row)
    assert refusals(row).count() == 1


def test_a_claim_that_has_ended_its_row_itself_is_not_late():
    row = ErrandFactory(status="doing", owner=W1)
    claim = claim_of(row)
    errands.succeed(claim, "noop")

    # The keeper had taken its list of claims before the row ended.
    lifecycle.renew(W1, [claim])

    assert not refusals(row).exists()


def test_a_claim_that_was_given_back_is_not_late():
    row = ErrandFactory(status="doing", owner=W1)
    claim = claim_of(row)
    assert recovery.release(work_type_named("errand"), claim, W1)

    lifecycle.renew(W1, [claim])

    assert not refusals(row).exists()
    assert_all_hold()


def test_the_rest_is_renewed_when_one_claim_is_lost():
    gone, kept = ErrandFactory(status="doing", owner=W1), ErrandFactory(status="doing", owner=W1)
    stale, claim = claim_of(gone), claim_of(kept)
    stale.trusted_until = claim.trusted_until = 0.0
    lost(gone)

    assert lifecycle.renew(W1, [stale, claim]) == [stale]

    assert claim.is_trusted()
    assert refusals(gone).count() == 1
    assert not refusals(kept).exists()


def test_trust_ends_by_the_start_of_a_renewal_and_not_by_its_answer(threads, settings):
    row = ErrandFactory(status="doing", owner=W1)
    claim = claim_of(row)
    locked = threads.hold(lambda: lifecycle.record(errands.ERRAND, row.pk, "NOTED"))

    renewal = threads.start(lambda: lifecycle.renew(W1, [claim]))
    assert renewal.waits()
    latest_start = time.monotonic()
    locked.commit()

    assert renewal.answer() == []
    assert claim.trusted_until <= claims.trusted_until(latest_start, settings.ADE_LEASE_SECONDS)


@pytest.mark.parametrize(
    ("meanwhile", "status", "moved"),
    [
        (lambda run, claim: lifecycle.renew(W1, [claim]), "running", 0),
        (lambda run, claim: runs.succeed(claim), "succeeded", 0),
        (lambda run, claim: runs.cancel(run, actor="olga"), "cancelled", 1),
        (lambda run, claim: recovery.rescue_expired([work_type_named("run")], W1), "failed", 0),
    ],
    ids=["renewed", "succeeded", "cancelled", "recovered by another"],
)
def test_recovery_goes_by_what_a_row_is_and_not_by_what_it_was(threads, step_at, meanwhile, status, moved):
    run = RunFactory(status="running", owner=W1)
    claim = claim_of(run)
    expire_lease(run)
    at = step_at("recover.selected")

    recovering = threads.start(lambda: recovery.rescue_expired([work_type_named("run")], W2))
    at.until_reached()
    meanwhile(run, claim)
    at.go_on()

    assert recovering.answer() == moved
    run.refresh_from_db()
    assert run.status == status
    assert_all_hold()


def test_recovery_does_not_need_the_row_of_the_worker():
    # The row of the worker is missing, as after a deletion.
    run = RunFactory(status="running", owner="w7@gone:1:noboot")
    expire_lease(run)

    assert recovery.rescue_expired(all_work_types(), W2) == 1

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("failed", "PROCESS_TERMINATED")
    assert_all_hold()


def test_rows_that_cannot_be_recovered_hide_no_others(monkeypatch):
    monkeypatch.setattr(recovery, "PAGE", 3)
    kind = work_type_named("errand")
    rows = [ErrandFactory(status="doing", owner=W1) for _ in range(9)]
    for place, row in enumerate(rows):
        expire_lease(row, seconds=100 - place)
    stubborn = {row.pk for row in rows[:7]}

    class Stubborn:
        states, name, budget = kind.states, kind.name, None

        @staticmethod
        def rescue(found):
            return None if found.id in stubborn else kind.rescue(found)

    assert recovery.rescue_expired([Stubborn], W2) == 2
