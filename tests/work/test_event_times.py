"""Whatever the clocks of its writers say: the events of a subject are listed in the order in which they happened."""

import itertools
import random
from datetime import timedelta

import pytest
from django.db.models import Q

from runs import lifecycle as runs
from tests.factories import (
    W1,
    W2,
    ErrandFactory,
    RunFactory,
    claim_of,
    columns_of,
    events_of,
    expire_lease,
    write,
)
from tests.testwork import lifecycle as errands
from tests.work.test_state_machine import FACTORIES, cases, make
from tests.writers import WRITERS
from work import boots, clock, lifecycle, recovery
from work.changes import EventDraft
from work.models import Work
from work.work_types import all_work_types

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture(params=WRITERS, autouse=True)
def writer(request, monkeypatch):
    monkeypatch.setattr(lifecycle, "_writer", lambda: request.param)


@pytest.fixture
def clock_is_off(monkeypatch):
    """From now on it is another host that writes."""
    true = clock.now

    def by(moment):
        monkeypatch.setattr(clock, "now", lambda: true() + moment)

    return by


@pytest.fixture
def errand():
    return ErrandFactory(status="doing")


def times_of(row):
    return list(events_of(row).values_list("at", flat=True))


def assert_times_rise(row):
    times = times_of(row)
    assert times == sorted(times)
    assert columns_of(row)["last_event_at"] == times[-1]


def lines(*moments):
    return [EventDraft("LOG", moment, message=f"line {n}") for n, moment in enumerate(moments)]


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=True))
def test_a_move_by_a_host_whose_clock_is_behind_is_not_before_the_last_event(states, verb, status, clock_is_off):
    row = FACTORIES[states.model](status=status)
    clock_is_off(-MINUTE)

    assert make(states, row, verb)

    assert_times_rise(row)
    assert times_of(row)[-1] == times_of(row)[-2]


@pytest.mark.parametrize(("states", "verb", "status"), cases(legal=True))
def test_what_begins_or_ends_with_a_move_says_the_time_of_its_event(states, verb, status, clock_is_off):
    if not issubclass(states.model, Work):
        return
    row = FACTORIES[states.model](status=status)
    before, target = columns_of(row), states[verb].target
    clock_is_off(-MINUTE)

    make(states, row, verb)

    after, told_at = columns_of(row), times_of(row)[-1]
    if target in states.model.TERMINAL:
        assert after["finished_at"] == told_at
    if target == states.model.ACTIVE != before["status"]:
        assert after["started_at"] == told_at


def test_what_was_created_by_a_clock_that_is_ahead_starts_when_it_was_created(clock_is_off):
    clock_is_off(MINUTE)
    row = errands.add()
    clock_is_off(timedelta())

    claim = errands.claim_next(W1)

    row.refresh_from_db()
    assert claim.id == row.pk
    assert times_of(row) == [row.created_at, row.created_at]
    assert row.started_at == row.created_at
    # Leases are judged by the clock, and not by what happened before.
    assert row.lease_expires_at < clock.now() + MINUTE


def test_a_later_time_is_told_as_it_is(errand):
    moment = clock.now() + MINUTE

    lifecycle.record_many(claim_of(errand), lines(moment, moment + MINUTE))

    assert times_of(errand)[-2:] == [moment, moment + MINUTE]
    assert columns_of(errand)["last_event_at"] == moment + MINUTE


def test_a_batch_that_was_told_before_a_request_to_cancel_is_not_before_it(errand):
    told = clock.now() + MINUTE
    lifecycle.cancel(errands.ERRAND, errand.pk, actor="olga")
    requested = times_of(errand)[-1]

    lifecycle.record_many(claim_of(errand), lines(requested - MINUTE, requested - MINUTE / 2, told))

    assert times_of(errand)[-4:] == [requested, requested, requested, told]
    assert_times_rise(errand)


def test_what_is_written_with_an_end_is_between_the_last_event_and_the_end(errand):
    claim = claim_of(errand)
    lifecycle.cancel(errands.ERRAND, errand.pk, actor="olga")
    requested = times_of(errand)[-1]
    claim.pending_events = lambda: lines(requested - MINUTE, requested + MINUTE)

    assert lifecycle.finish(claim, "stop")

    assert times_of(errand)[-4:] == [requested, requested, requested + MINUTE, requested + MINUTE]
    assert columns_of(errand)["finished_at"] == requested + MINUTE
    assert_times_rise(errand)


@pytest.mark.parametrize("is_with_end", [False, True], ids=["alone", "with its end"])
def test_a_clock_that_is_set_back_within_a_batch_tells_no_earlier_time(errand, is_with_end):
    moment, claim = clock.now(), claim_of(errand)
    batch = lines(moment + MINUTE, moment, moment + 2 * MINUTE, moment + MINUTE)
    claim.pending_events = lambda: batch

    assert lifecycle.finish(claim, "succeed") if is_with_end else lifecycle.record_many(claim, batch)

    assert times_of(errand)[2:6] == [moment + MINUTE, moment + MINUTE, moment + 2 * MINUTE, moment + 2 * MINUTE]
    assert_times_rise(errand)


def test_a_batch_after_a_batch_is_not_before_that(errand):
    moment, claim = clock.now() + MINUTE, claim_of(errand)

    lifecycle.record_many(claim, lines(moment, moment + MINUTE))
    lifecycle.record_many(claim, lines(moment, moment + 2 * MINUTE))

    assert times_of(errand)[2:] == [moment, moment + MINUTE, moment + MINUTE, moment + 2 * MINUTE]


def test_recovery_by_a_host_whose_clock_is_behind_tells_its_move_and_its_receipt_last(errand, clock_is_off):
    expire_lease(errand, seconds=3600)
    clock_is_off(-MINUTE)

    assert recovery.rescue_expired(all_work_types(), W2) == 1

    assert_times_rise(errand)
    assert events_of(errand).last().kind == recovery.RECEIPT


def test_a_late_write_that_is_refused_is_told_last(errand, clock_is_off):
    stale = claim_of(errand, owner=W2)
    clock_is_off(-MINUTE)

    assert not lifecycle.finish(stale, "succeed")

    assert events_of(errand).last().kind == lifecycle.LATE_WRITE_REFUSED
    assert_times_rise(errand)


def test_pruning_by_a_host_whose_clock_is_behind_is_told_at_the_time_of_the_end(clock_is_off):
    run = RunFactory(status="succeeded")
    ended = times_of(run)[-1]
    clock_is_off(-MINUTE)

    runs.prune([run.pk], Q(), actor=W1)

    assert times_of(run) == [ended]
    assert columns_of(run)["pruned_at"] == columns_of(run)["last_event_at"] == ended


def test_what_is_no_work_is_told_in_order_too(clock_is_off):
    worker = boots.register("w1", "boot-1", {})
    clock_is_off(-MINUTE)

    boots.record_contention(worker, "a busy database")
    boots.sign_off(worker)

    assert_times_rise(worker)
    assert len(times_of(worker)) == 3


@pytest.mark.parametrize("is_batch", [False, True], ids=["an event", "a batch"])
def test_a_row_that_an_older_version_wrote_last_is_told_in_order_too(errand, clock_is_off, is_batch):
    write(errand, last_event_at=None, previous_event_at=None)
    before = times_of(errand)[-1]
    clock_is_off(-MINUTE)

    if is_batch:
        lifecycle.record_many(claim_of(errand), lines(clock.now(), before + MINUTE))
    else:
        lifecycle.record(errands.ERRAND, errand.pk, "NOTE")

    assert times_of(errand)[2:] == ([before, before + MINUTE] if is_batch else [before])
    assert_times_rise(errand)


def test_a_row_that_an_older_version_wrote_last_ends_in_order(errand, clock_is_off):
    claim = claim_of(errand)
    lifecycle.record(errands.ERRAND, errand.pk, "NOTE")
    write(errand, last_event_at=None, previous_event_at=None)
    clock_is_off(-MINUTE)
    claim.pending_events = lambda: lines(clock.now(), clock.now())

    assert lifecycle.finish(claim, "succeed")

    assert_times_rise(errand)
    assert len(set(times_of(errand)[2:])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_each_event_says_its_own_time_or_that_of_the_event_before_it(monkeypatch, seed):
    chance, noon = random.Random(seed), clock.now()
    expected = []

    def a_time():
        moment = noon + timedelta(microseconds=chance.randrange(-10, 10) * 10**5)
        monkeypatch.setattr(clock, "now", lambda: moment)
        expected.append(moment)
        return moment

    a_time()
    errand = errands.add()
    a_time()
    claim = errands.claim_next(W1)
    for _ in range(20):
        if chance.random() < 0.5:
            a_time()
            lifecycle.record(errands.ERRAND, errand.pk, "NOTE")
        else:
            lifecycle.record_many(claim, lines(*(a_time() for _ in range(chance.randrange(1, 4)))))
    batch = lines(a_time(), a_time())
    claim.pending_events = lambda: batch
    a_time()
    assert lifecycle.finish(claim, "succeed")

    assert times_of(errand) == list(itertools.accumulate(expected, max))
    assert columns_of(errand)["finished_at"] == times_of(errand)[-1]
