"""Real workers and real signals."""

import signal
import time
from collections import Counter
from datetime import datetime

import psutil
import pytest
from django.db import connection

from tests.processes import START_SECONDS
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import lifecycle
from work.models import Event, Worker

# A lease that never expires during a test, however slow the machine is.
LONG = {"ADE_LEASE_SECONDS": 600}

pytestmark = pytest.mark.long


def add(script="noop"):
    return errands.add(script=script)


def statuses():
    return Counter(Errand.objects.values_list("status", flat=True))


def until_at_work(row):
    """Wait until a worker does the errand; return the owner of the claim."""
    until(lambda: Errand.objects.filter(pk=row.pk, status="doing").exists(), START_SECONDS)
    return Errand.objects.get(pk=row.pk).lease_owner


def child_of(row):
    """Return the process that does this errand."""
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


def somebody_listens():
    """Return whether a worker listens, on PostgreSQL; earlier wakeups are lost."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND state = 'idle' AND datname = current_database()"
        )
        return cursor.fetchone()[0] > 0


def seconds_until(condition, at_most):
    began = time.monotonic()
    until(condition, at_most)
    return time.monotonic() - began


def test_a_worker_does_what_waits_and_ends_when_told_to(programs):
    rows = [add() for _ in range(20)] + [add("raise")]

    worker = programs.worker()
    until(lambda: statuses() == {"done": 20, "failed": 1}, START_SECONDS)
    worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    assert [e.kind for e in events(rows[0])] == ["ERRAND_QUEUED", "ERRAND_STARTED", "ERRAND_DONE"]
    (row,) = Worker.objects.all()
    assert (row.name, row.pid, row.doing) == ("w1", worker.pid, [])
    assert row.stopped_at
    assert_all_hold()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_worker_that_is_told_to_end_finishes_what_it_has_begun_and_begins_nothing(programs, number):
    begun = add("sleep:2")
    worker = programs.worker(slots="errand=1", **LONG)
    until_at_work(begun)

    worker.send(number)
    worker.until_logged("worker.draining")
    waiting = add()

    assert worker.code() == 0, worker.logged()
    assert events(begun).last().kind == "ERRAND_DONE"
    assert events(waiting).last().kind == "ERRAND_QUEUED"
    assert Worker.objects.get().stopped_at


@pytest.mark.parametrize("script", ["sleep:600", "child:600"])
def test_a_worker_that_is_told_twice_gives_back_what_it_has_begun(programs, script):
    row = add(script)
    worker = programs.worker(**LONG)
    until_at_work(row)
    descendants = worker.children()
    worker.send(signal.SIGTERM)
    worker.until_logged("worker.draining")

    worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    # Its slot has ended; otherwise the work would have been given back without it.
    assert "slot.interrupted" in worker.logged()
    assert statuses() == {"queued": 1}
    assert events(row).last().kind == "RECOVERED"
    assert all(is_gone(each) for each in descendants)
    assert_all_hold()


def test_signals_that_come_all_at_once_end_a_worker_as_two_do(programs):
    rows = [add("sleep:600") for _ in range(2)]
    worker = programs.worker(**LONG)
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
    row = add("sleep:600")
    worker = programs.worker(ADE_DRAIN_SECONDS=1, **LONG)
    until_at_work(row)

    worker.send(signal.SIGTERM)

    took = seconds_until(lambda: not worker.is_alive(), START_SECONDS)
    assert worker.code() == 0, worker.logged()
    assert took > 0.9
    assert "slot.interrupted" in worker.logged()
    assert statuses() == {"queued": 1}


def test_the_work_of_a_killed_worker_is_taken_up_by_another_when_its_lease_has_run_out(programs):
    row = add("child:600")
    first = programs.worker("w1")
    owner = until_at_work(row)
    child = child_of(row)
    second = programs.worker("w2", **LONG)
    second.until_logged("worker.recovered")

    first.kill()

    until(lambda: events(row, "RECOVERED").exists())

    assert is_gone(child)
    assert until_at_work(row).startswith("w2@")
    receipt = events(row, "RECOVERED").get()
    assert (receipt.data["owner"], receipt.data["verb"]) == (owner, "release")
    assert receipt.at >= datetime.fromisoformat(receipt.data["lease_expired_at"])
    assert_all_hold()


def test_a_worker_that_starts_again_takes_up_at_once_what_it_has_left(programs):
    row = add("child:600")
    programs.worker("w1", **LONG)
    owner = until_at_work(row)
    child = child_of(row)
    programs.started[0].kill()
    # Long before its lease expires.
    until(lambda: is_gone(child))

    again = programs.worker("w1", **LONG)
    again.until_logged("worker.recovered")
    new_owner = until(lambda: (found := until_at_work(row)) != owner and found)

    assert new_owner.startswith("w1@")
    assert events(row, "RECOVERED").get().data["owner"] == owner
    assert Event.objects.filter(kind="ERRAND_STARTED").count() == 2
    assert Worker.objects.get(pid=programs.started[0].pid).stopped_at
    assert_all_hold()


def test_two_workers_of_one_name_leave_each_others_work_alone(programs):
    row = add("sleep:600")
    first = programs.worker("w1", slots="errand=1", **LONG)
    owner = until_at_work(row)

    second = programs.worker("w1", slots="errand=1", **LONG)
    second.until_logged("worker.recovered")
    of_second = add()
    until(lambda: events(of_second, "ERRAND_DONE").exists())
    lifecycle.cancel(errands.ERRAND, row.pk, actor="olga")
    until(lambda: events(row, "ERRAND_CANCELLED").exists())

    assert events(of_second, "ERRAND_DONE").get().actor.startswith("w1@")
    assert events(of_second, "ERRAND_DONE").get().actor != owner
    told = ["ERRAND_QUEUED", "ERRAND_STARTED", "ERRAND_CANCEL_REQUESTED", "ERRAND_CANCELLED"]
    assert [e.kind for e in events(row)] == told
    assert events(row, "ERRAND_CANCELLED").get().actor == owner
    for worker in (first, second):
        worker.send(signal.SIGTERM)
    assert [first.code(), second.code()] == [0, 0]


def test_a_lease_that_is_shorter_than_the_work_is_kept_by_renewal(programs):
    rows = [add("sleep:9"), add("child:9")]
    programs.worker(ADE_LEASE_SECONDS=4)
    programs.worker("w2", ADE_LEASE_SECONDS=4)

    until(lambda: statuses() == {"done": 2}, START_SECONDS)

    assert [events(row, "ERRAND_STARTED").count() for row in rows] == [1, 1]
    assert not Event.objects.filter(kind__in=["RECOVERED", lifecycle.LATE_WRITE_REFUSED]).exists()


def test_what_a_worker_writes_that_was_stopped_for_longer_than_its_lease_is_refused(programs):
    row = add("deaf:3")
    first = programs.worker("w1")
    owner = until_at_work(row)
    # The worker has claimed, and may check its claim once more before it begins. After a renewal it has begun.
    claimed_until = Errand.objects.get(pk=row.pk).lease_expires_at
    until(lambda: Errand.objects.get(pk=row.pk).lease_expires_at != claimed_until)
    first.freeze()
    second = programs.worker("w2", **LONG)
    until(lambda: events(row, "ERRAND_DONE").exists(), START_SECONDS)
    done_by = events(row, "ERRAND_DONE").get().actor

    first.send(signal.SIGCONT)

    until(lambda: events(row, lifecycle.LATE_WRITE_REFUSED).exists())
    assert done_by.startswith("w2@")
    assert {e.actor for e in events(row, lifecycle.LATE_WRITE_REFUSED)} == {owner}
    assert statuses() == {"done": 1}
    assert events(row, "ERRAND_DONE").count() == 1
    # The worker is alive and does work.
    second.send(signal.SIGTERM)
    assert second.code() == 0
    late = add()
    until(lambda: events(late, "ERRAND_DONE").exists())
    assert events(late, "ERRAND_DONE").get().actor == owner
    assert_all_hold()


def test_the_child_of_a_worker_that_is_stopped_ends_before_another_may_be_started(programs):
    row = add("child:600")
    first = programs.worker("w1")
    until_at_work(row)
    child = child_of(row)

    first.freeze()
    programs.worker("w2", **LONG)
    until(lambda: events(row, "RECOVERED").exists(), START_SECONDS)
    started_again = until(lambda: events(row, "ERRAND_STARTED").count() == 2)

    assert started_again
    assert is_gone(child)
    first.send(signal.SIGCONT)
    first.until_logged("slot.interrupted")
    assert until_at_work(row).startswith("w2@")
    assert_all_hold()


@pytest.mark.parametrize("script", ["child:600", "sleep:600"])
def test_a_cancel_is_obeyed_within_a_second_or_two(programs, script):
    # On PostgreSQL the worker is notified and need not tick. On SQLite it checks its claims at each tick.
    is_told = connection.vendor == "postgresql"
    row = add(script)
    worker = programs.worker(ADE_TICK_SECONDS=60 if is_told else 1, **LONG)
    until_at_work(row)
    until(lambda: not is_told or somebody_listens())
    children = [child_of(row)] if script == "child:600" else []

    assert lifecycle.cancel(errands.ERRAND, row.pk, actor="olga") == "doing"

    # Without wakeup and tick, it would notice at the next renewal, a third of the lease later.
    took = seconds_until(lambda: statuses() == {"cancelled": 1}, START_SECONDS)
    assert took < 60
    assert all(is_gone(child) for child in children)
    assert worker.is_alive()
    assert_all_hold()


def test_work_that_is_added_is_claimed_well_before_the_next_tick(programs):
    worker = programs.worker(ADE_TICK_SECONDS=600, **LONG)
    worker.until_logged("worker.recovered")
    first = add()
    until(lambda: events(first, "ERRAND_DONE").exists())
    took = []

    for _ in range(10):
        row = add()
        until(lambda row=row: events(row, "ERRAND_DONE").exists(), every=0.002)
        took.append((events(row, "ERRAND_STARTED").get().at - row.created_at).total_seconds())

    # Usually it takes a hundredth of a second, or a twentieth on SQLite.
    assert sorted(took)[2] < 10
    # Two slots share a burst of wakeups; a lost one would cost a tick.
    burst = [add("sleep:0.05") for _ in range(20)]
    until(lambda: statuses() == {"done": 11 + len(burst)})


def test_an_idle_worker_is_quiet(programs):
    worker = programs.worker(slots="errand=4", ADE_LEASE_SECONDS=30)
    worker.until_logged("worker.recovered")
    process = psutil.Process(worker.pid)
    # Skip the seconds after the start.
    recovered_at = time.monotonic()
    until(lambda: time.monotonic() > recovered_at + 3, every=0.5)
    before, began = process.cpu_times(), time.monotonic()

    until(lambda: time.monotonic() - began > 10, every=0.5)

    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    # The share of a processor; generous, because other load makes each second less productive.
    assert used / (time.monotonic() - began) < 0.1
