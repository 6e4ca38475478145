"""Workers that are asked to drain through their row behave as after a first SIGTERM (fault A10)."""

import signal
import time

import pytest

from runs.models import Run
from tests.engines import kinds_of, outcome_of, until_ended
from tests.factories import events_of, told
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work import draining
from work.models import Worker
from work.operations.outcomes import Outcome

GIVEN_BACK = ("failed", "PROCESS_TERMINATED")
# An idle worker notices the request and stops within this time, even with long intervals: long enough for a busy
# machine, and shorter than the intervals.
SOON = 300

pytestmark = pytest.mark.long


def row_of(worker):
    until(lambda: Worker.objects.filter(pid=worker.pid).exists() or not worker.is_alive())
    return Worker.objects.get(pid=worker.pid)


def ask(worker):
    assert draining.drain(row_of(worker), actor="olga", reason="a new version") == Outcome.DRAINING


def stopped_well(worker):
    assert worker.code() == 0, worker.logged()
    row = row_of(worker)
    assert (row.state, row.doing, row.drain_requested_by) == ("stopped", [], "olga")
    assert told(row) == ["WORKER_STARTED", "WORKER_DRAIN_REQUESTED", "WORKER_STOPPED"]
    assert not Run.objects.filter(status="running").exists()
    assert_all_hold()


def test_it_finishes_what_it_has_begun_takes_up_nothing_more_and_ends(site, engines):
    begun = site.submit(seconds=2, keeps="result.txt")
    worker = site.worker(slots="run=1", **engines)
    site.witness.until_at_work(begun)
    waiting = site.submit()

    ask(worker)

    stopped_well(worker)
    assert outcome_of(begun) == ("succeeded", "")
    assert [each.finished for each in site.witness.of(begun)] == [True]
    assert kinds_of(waiting) == ["RUN_QUEUED"]
    assert site.witness.of(waiting) == []


def test_the_next_boot_takes_up_what_waited(site):
    first = site.worker(slots="run=1")
    ask(first)
    stopped_well(first)
    waiting = site.submit()

    site.worker(slots="run=1")

    assert until_ended(waiting) == ("succeeded", "")


def test_others_go_on_while_one_drains(site):
    begun = site.submit(seconds=3)
    first = site.worker(slots="run=1")
    site.witness.until_at_work(begun)
    ask(first)
    first.until_logged("worker.draining")
    second = site.worker("w2", slots="run=1")

    waiting = site.submit()

    assert until_ended(waiting) == ("succeeded", "")
    assert row_of(second).owner in events_of(waiting).get(kind="RUN_STARTED").actor
    stopped_well(first)
    assert outcome_of(begun) == ("succeeded", "")


def test_what_takes_longer_than_a_drain_may_is_given_back(site):
    run = site.submit(seconds=600)
    worker = site.worker(ADE_DRAIN_SECONDS=1)
    seen = site.witness.until_at_work(run)

    ask(worker)

    stopped_well(worker)
    assert outcome_of(run) == GIVEN_BACK
    assert run.error_message == "its worker was stopped"
    until(lambda: seen.gone)


def test_a_worker_that_looks_seldom_is_woken(site):
    worker = site.worker(ADE_TICK_SECONDS=600, ADE_LEASE_SECONDS=600)
    worker.until_logged("worker.started")
    ask(worker)
    asked_at = time.monotonic()

    worker.until_logged("worker.stopped")

    assert time.monotonic() - asked_at < SOON
    stopped_well(worker)


def test_the_first_signal_after_a_request_ends_nothing(site):
    """The signal may come from a process manager, and would be the first one without the request."""
    run = site.submit(seconds=3)
    worker = site.worker()
    site.witness.until_at_work(run)
    ask(worker)
    worker.until_logged("worker.draining")

    worker.send(signal.SIGTERM)

    stopped_well(worker)
    assert outcome_of(run) == ("succeeded", "")


def test_the_second_signal_after_a_request_ends_all(site):
    run = site.submit(seconds=600)
    worker = site.worker()
    site.witness.until_at_work(run)
    ask(worker)
    worker.until_logged("worker.draining")

    # Signals sent before the first was handled count as one: pending signals of the same number are merged.
    worker.send(signal.SIGTERM)
    worker.send(signal.SIGINT)

    stopped_well(worker)
    assert outcome_of(run) == GIVEN_BACK


def test_a_request_after_a_signal_is_not_a_second_signal(site):
    run = site.submit(seconds=3)
    worker = site.worker()
    site.witness.until_at_work(run)
    worker.send(signal.SIGTERM)
    worker.until_logged("worker.draining")

    ask(worker)

    stopped_well(worker)
    assert outcome_of(run) == ("succeeded", "")
