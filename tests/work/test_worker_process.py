"""Real workers, real signals."""

import signal
import time
from collections import Counter

import psutil
import pytest
from django.db import connection

from tests.races.invariants import assert_all_hold
from tests.stepping import until
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import lifecycle
from work.models import Event, Worker

LEASE, TICK = 2, 1
# Within which the work of a dead worker is taken up.
RECOVERY_SECONDS = LEASE + 2 * TICK + 1

pytestmark = pytest.mark.timeout(90)


def add(script="noop"):
    return errands.add(script=script)


def statuses():
    return Counter(Errand.objects.values_list("status", flat=True))


def until_at_work(row):
    """Until a worker does it; answers the owner of the claim."""
    until(lambda: Errand.objects.filter(pk=row.pk, status="doing").exists())
    return Errand.objects.get(pk=row.pk).lease_owner


def child_of(row):
    """The process that does this errand."""
    until(lambda: Errand.objects.get(pk=row.pk).process)
    return psutil.Process(Errand.objects.get(pk=row.pk).process["pid"])


def is_gone(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def events(row, kind=None):
    found = Event.objects.filter(subject_kind="errand", subject_id=row.pk).order_by("sequence")
    return found.filter(kind=kind) if kind else found


def seconds_until(condition, at_most):
    began = time.monotonic()
    until(condition, at_most)
    return time.monotonic() - began


def test_a_worker_does_what_waits_and_ends_when_told_to(programs):
    rows = [add() for _ in range(20)] + [add("raise")]

    worker = programs.worker()
    until(lambda: statuses() == {"done": 20, "failed": 1})
    worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    assert [e.kind for e in events(rows[0])] == ["ERRAND_QUEUED", "ERRAND_STARTED", "ERRAND_DONE"]
    (row,) = Worker.objects.all()
    assert (row.name, row.pid, row.doing) == ("w1", worker.pid, [])
    assert row.stopped_at
    assert_all_hold()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_worker_that_is_told_to_end_finishes_what_it_has_begun_and_begins_nothing(programs, number):
    begun, waiting = add("sleep:1"), add()
    worker = programs.worker(slots="errand=1")
    until_at_work(begun)

    worker.send(number)

    assert worker.code() == 0, worker.logged()
    assert events(begun).last().kind == "ERRAND_DONE"
    assert events(waiting).last().kind == "ERRAND_QUEUED"
    assert Worker.objects.get().stopped_at


@pytest.mark.parametrize("script", ["sleep:60", "child:60"])
def test_a_worker_that_is_told_twice_gives_back_what_it_has_begun(programs, script):
    row = add(script)
    worker = programs.worker()
    until_at_work(row)
    descendants = worker.children()
    worker.send(signal.SIGTERM)
    worker.until_logged("worker.draining")

    worker.send(signal.SIGTERM)

    took = seconds_until(lambda: not worker.is_alive(), 10)
    assert worker.code() == 0, worker.logged()
    assert took < 3
    assert statuses() == {"queued": 1}
    assert events(row).last().kind == "RECOVERED"
    assert all(is_gone(each) for each in descendants)
    assert_all_hold()


def test_signals_that_come_all_at_once_end_a_worker_as_two_do(programs):
    rows = [add("sleep:60") for _ in range(2)]
    worker = programs.worker()
    for row in rows:
        until_at_work(row)

    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP] * 200:
        worker.send(number)

    assert worker.code() == 0, worker.logged()
    assert statuses() == {"queued": 2}


def test_signals_that_come_while_a_worker_ends_do_not_change_how(programs):
    worker = programs.worker()
    worker.until_logged("worker.recovered")

    while worker.is_alive():
        worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()


def test_a_drain_has_an_end(programs):
    row = add("sleep:60")
    worker = programs.worker(ADE_DRAIN_SECONDS=1)
    until_at_work(row)

    worker.send(signal.SIGTERM)

    took = seconds_until(lambda: not worker.is_alive(), 15)
    assert worker.code() == 0, worker.logged()
    assert 0.9 < took < 4
    assert statuses() == {"queued": 1}


def test_the_work_of_a_killed_worker_is_taken_up_by_another_when_its_lease_has_run_out(programs):
    row = add("child:60")
    first = programs.worker("w1")
    owner = until_at_work(row)
    child = child_of(row)
    second = programs.worker("w2")
    second.until_logged("worker.recovered")

    first.kill()

    assert seconds_until(lambda: is_gone(child), 5) < 1.5
    assert seconds_until(lambda: events(row, "RECOVERED").exists(), 10) < RECOVERY_SECONDS
    assert until_at_work(row).startswith("w2@")
    receipt = events(row, "RECOVERED").get()
    assert (receipt.data["owner"], receipt.data["verb"]) == (owner, "release")
    assert_all_hold()


def test_a_worker_that_starts_again_takes_up_at_once_what_it_has_left(programs):
    row = add("child:60")
    programs.worker("w1", ADE_LEASE_SECONDS=60)
    owner = until_at_work(row)
    child = child_of(row)
    programs.started[0].kill()
    until(lambda: is_gone(child))

    again = programs.worker("w1", ADE_LEASE_SECONDS=60)
    again.until_logged("worker.recovered")
    new_owner = until(lambda: (found := until_at_work(row)) != owner and found)

    assert new_owner.startswith("w1@")
    assert events(row, "RECOVERED").get().data["owner"] == owner
    assert Event.objects.filter(kind="ERRAND_STARTED").count() == 2
    assert Worker.objects.get(pid=programs.started[0].pid).stopped_at
    assert_all_hold()


def test_two_workers_of_one_name_leave_each_others_work_alone(programs):
    rows = [add("sleep:2") for _ in range(2)]
    first = programs.worker("w1", slots="errand=1")
    owner = until_at_work(rows[0])

    second = programs.worker("w1", slots="errand=1")
    second.until_logged("worker.recovered")
    other = until_at_work(rows[1])
    until(lambda: statuses() == {"done": 2})

    assert owner != other
    assert [e.kind for e in events(rows[0])] == ["ERRAND_QUEUED", "ERRAND_STARTED", "ERRAND_DONE"]
    assert {events(row, "ERRAND_DONE").get().actor for row in rows} == {owner, other}
    assert not Event.objects.filter(kind="RECOVERED").exists()
    for worker in (first, second):
        worker.send(signal.SIGTERM)
    assert [first.code(), second.code()] == [0, 0]


@pytest.mark.long
def test_a_lease_that_is_shorter_than_the_work_is_kept_by_renewal(programs):
    rows = [add("sleep:3"), add("child:3")]
    programs.worker(ADE_LEASE_SECONDS=1)
    programs.worker("w2", ADE_LEASE_SECONDS=1)

    until(lambda: statuses() == {"done": 2})

    assert [events(row, "ERRAND_STARTED").count() for row in rows] == [1, 1]
    assert not Event.objects.filter(kind__in=["RECOVERED", lifecycle.LATE_WRITE_REFUSED]).exists()


def test_what_a_worker_writes_that_was_stopped_for_longer_than_its_lease_is_refused(programs):
    row = add("deaf:2")
    first = programs.worker("w1")
    owner = until_at_work(row)
    first.freeze()
    second = programs.worker("w2")
    until(lambda: events(row, "ERRAND_DONE").exists())
    done_by = events(row, "ERRAND_DONE").get().actor

    first.send(signal.SIGCONT)

    until(lambda: events(row, lifecycle.LATE_WRITE_REFUSED).exists())
    assert done_by.startswith("w2@")
    assert {e.actor for e in events(row, lifecycle.LATE_WRITE_REFUSED)} == {owner}
    assert statuses() == {"done": 1}
    assert events(row, "ERRAND_DONE").count() == 1
    # It lives on and works.
    second.send(signal.SIGTERM)
    assert second.code() == 0
    late = add()
    until(lambda: events(late, "ERRAND_DONE").exists())
    assert events(late, "ERRAND_DONE").get().actor == owner
    assert_all_hold()


def test_the_child_of_a_worker_that_is_stopped_ends_before_another_may_be_started(programs):
    row = add("child:60")
    first = programs.worker("w1")
    until_at_work(row)
    child = child_of(row)

    first.freeze()
    programs.worker("w2")
    until(lambda: events(row, "RECOVERED").exists())
    started_again = until(lambda: events(row, "ERRAND_STARTED").count() == 2)

    assert started_again
    assert is_gone(child)
    first.send(signal.SIGCONT)
    first.until_logged("slot.interrupted")
    assert until_at_work(row).startswith("w2@")
    assert_all_hold()


@pytest.mark.parametrize("script", ["child:60", "sleep:60"])
def test_a_cancel_is_obeyed_within_a_second_or_two(programs, script):
    row = add(script)
    worker = programs.worker(ADE_LEASE_SECONDS=30)
    until_at_work(row)
    children = [child_of(row)] if script == "child:60" else []

    assert lifecycle.cancel(errands.ERRAND, row.pk, actor="olga") == "doing"

    took = seconds_until(lambda: statuses() == {"cancelled": 1}, 10)
    assert took < (1.0 if connection.vendor == "postgresql" else 2.0)
    assert all(is_gone(child) for child in children)
    assert worker.is_alive()
    assert_all_hold()


def test_work_that_is_added_is_claimed_well_before_the_next_tick(programs):
    worker = programs.worker(ADE_TICK_SECONDS=60, ADE_LEASE_SECONDS=60)
    worker.until_logged("worker.recovered")
    first = add()
    until(lambda: events(first, "ERRAND_DONE").exists())
    took = []

    for _ in range(10):
        row = add()
        until(lambda row=row: events(row, "ERRAND_DONE").exists(), every=0.002)
        took.append((events(row, "ERRAND_STARTED").get().at - row.created_at).total_seconds())

    assert sorted(took)[5] < (0.1 if connection.vendor == "postgresql" else 0.2)
    assert max(took) < 2
    # Two slots take turns with a burst, without losing one of its bells.
    burst = [add("sleep:0.05") for _ in range(20)]
    assert seconds_until(lambda: statuses() == {"done": 11 + len(burst)}, 20) < 5


@pytest.mark.long
def test_an_idle_worker_is_quiet(programs):
    worker = programs.worker(slots="errand=4", ADE_LEASE_SECONDS=30)
    worker.until_logged("worker.recovered")
    process = psutil.Process(worker.pid)
    # The second after its start does not count.
    until(lambda: time.time() - process.create_time() > 4)
    before, began = process.cpu_times(), time.monotonic()

    until(lambda: time.monotonic() - began > 10, every=0.5)

    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    assert used / (time.monotonic() - began) < 0.02
