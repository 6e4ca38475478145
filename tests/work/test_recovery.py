import socket
from datetime import timedelta

import pytest
from django.db import DatabaseError

from tests.factories import ErrandFactory, StageFactory, claim_of, columns_of, events_of, expire_lease, told, write
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import clock, failpoints, lifecycle, recovery
from work.processes import identity
from work.processes.identity import ProcessId
from work.work_types import WorkType, work_type_named

pytestmark = pytest.mark.django_db


def kind_that(rescue):
    return WorkType(errands.ERRAND, rescue=rescue)


@pytest.fixture
def kind():
    return kind_that(errands.rescue)


def expired(number):
    return [expire_lease(ErrandFactory(status="doing"), 100 - n) for n in range(number)]


def test_what_expired_first_is_rescued_first(w2):
    third, first, second = (expire_lease(ErrandFactory(status="doing"), ago) for ago in (1, 60, 30))
    order = []

    def rescue(found):
        order.append(found.id)
        return errands.rescue(found)

    assert recovery.rescue_expired([kind_that(rescue)], w2) == 3

    assert order == [first.pk, second.pk, third.pk]


def test_rows_that_cannot_be_rescued_hide_no_others(monkeypatch, w2):
    monkeypatch.setattr(recovery, "PAGE", 3)
    rows = expired(10)
    last = rows[-1].pk

    moved = recovery.rescue_expired([kind_that(lambda found: errands.rescue(found) if found.id == last else None)], w2)

    assert moved == 1
    assert set(Errand.objects.filter(status="queued")) == {rows[-1]}


def test_rows_of_one_moment_are_all_looked_at(monkeypatch, kind, w2):
    monkeypatch.setattr(recovery, "PAGE", 3)
    moment = clock.now() - timedelta(seconds=10)
    for row in ErrandFactory.create_batch(10, status="doing"):
        write(row, lease_expires_at=moment)

    assert recovery.rescue_expired([kind], w2) == 10


@pytest.mark.parametrize("error", [DatabaseError("lock timeout"), ValueError("a bug"), KeyError("pid")], ids=repr)
def test_a_row_whose_rescue_fails_does_not_keep_the_others_waiting(error, w2):
    rows = expired(3)
    before = columns_of(rows[0])

    def rescue(found):
        verb = errands.rescue(found)
        if found.id == rows[0].pk:
            raise error
        return verb

    assert recovery.rescue_expired([kind_that(rescue)], w2) == 2

    assert columns_of(rows[0]) == before
    assert [told(row)[-1] for row in rows] == ["ERRAND_STARTED", "RECOVERED", "RECOVERED"]


def test_a_move_and_its_receipt_are_both_written_or_neither(kind, w2):
    (row,) = expired(1)
    before = columns_of(row)
    failpoints.arm("recover.before_commit:raise*1")

    try:
        assert recovery.rescue_expired([kind], w2) == 0
    finally:
        failpoints.arm("")

    assert columns_of(row) == before
    assert recovery.rescue_expired([kind], w2) == 1


def test_a_lease_that_was_renewed_after_the_look_is_left_to_its_worker(w1, w2):
    (row,) = expired(1)
    claim = claim_of(row)

    def rescue(found):
        lifecycle.renew(w1, [claim])
        return errands.rescue(found)

    assert recovery.rescue_expired([kind_that(rescue)], w2) == 0

    row.refresh_from_db()
    assert (row.status, row.lease_owner) == ("doing", w1)
    assert told(row) == ["ERRAND_QUEUED", "ERRAND_STARTED"]


def test_the_child_of_a_worker_that_renewed_its_lease_after_the_look_is_not_ended(kind, w1, w2, monkeypatch):
    rows = expired(2)
    for row in rows:
        write(row, process={"host": "here", "machine": "m", "pid": row.pk, "start_ticks": 1})
    ended = []

    def end(process, grace):
        ended.append(process.pid)
        # While the first process is being ended, the worker of the second row comes back.
        lifecycle.renew(w1, [claim_of(rows[1])])
        return "ended"

    monkeypatch.setattr(recovery, "end_recorded", end)

    assert recovery.rescue_expired([kind], w2) == 1

    assert ended == [rows[0].pk]


def test_the_child_is_ended_before_anybody_may_start_another(w2, monkeypatch):
    (row,) = expired(1)
    write(row, process={"host": "here", "machine": "m", "pid": 4711, "start_ticks": 1})
    order = []
    monkeypatch.setattr(recovery, "end_recorded", lambda process, grace: order.append("ended") or "ended")

    def rescue(found):
        order.append("moved")
        return errands.rescue(found)

    recovery.rescue_expired([kind_that(rescue)], w2)

    assert order == ["ended", "moved"]
    assert events_of(row).last().data["process"] == "ended"


def test_a_child_of_another_machine_that_has_our_own_pid_is_none_of_ours(kind, w2):
    (row,) = expired(1)
    own = ProcessId.current()
    write(row, process={**own.to_json(), "machine": "another boot", "host": "there"})

    assert recovery.rescue_expired([kind], w2) == 1

    assert events_of(row).last().data["process"] == "elsewhere"


def test_a_child_that_had_our_own_pid_before_us_is_gone(kind, w2):
    (row,) = expired(1)
    own = ProcessId.current()
    write(row, process={**own.to_json(), "start_ticks": own.start_ticks - 1})

    assert recovery.rescue_expired([kind], w2) == 1

    assert events_of(row).last().data["process"] == "gone"
    assert own.host == socket.gethostname()
    assert identity.ProcessId.current() == own


def test_two_who_find_a_row_move_it_once(kind, w1, w2):
    (row,) = expired(1)
    found = [next(recovery._lost_claims(errands.ERRAND, recovery.models.Q(), recovery.EXPIRED, by)) for by in (w1, w2)]

    assert [errands.rescue(each) for each in found] == ["release", None]

    assert told(row).count("ERRAND_RELEASED") == 1


def test_nothing_is_rescued_just_after_a_clock_was_set(kind, monkeypatch, w2):
    expired(1)
    monkeypatch.setattr(clock, "jumped_within", lambda seconds: True)

    assert recovery.rescue_expired([kind], w2) == 0


def test_a_kind_that_nobody_holds_or_that_has_no_rule_is_passed_over(w2):
    expired(1)

    assert recovery.rescue_expired([work_type_named("job"), work_type_named("document"), kind_that(None)], w2) == 0


def test_all_that_an_owner_holds_is_rescued_without_waiting_for_leases(w1, w2):
    errand, stage = ErrandFactory(status="doing", owner=w1), StageFactory(status="RUNNING", owner=w1)
    other = ErrandFactory(status="doing", owner=w2)
    before = columns_of(other)
    kinds = [work_type_named("errand"), work_type_named("stage")]

    assert recovery.rescue_owned_by(kinds, [w1], recovery.EARLIER_BOOT, w2) == 2

    for row, status in ((errand, "queued"), (stage, "READY")):
        row.refresh_from_db()
        assert row.status == status
        receipt = events_of(row).last()
        assert (receipt.kind, receipt.data["rule"]) == ("RECOVERED", recovery.EARLIER_BOOT)
    assert columns_of(other) == before


def test_a_worker_gives_back_what_it_holds(kind, w1):
    row = ErrandFactory(status="doing", owner=w1)

    assert recovery.release(kind, claim_of(row), w1)

    row.refresh_from_db()
    assert row.status == "queued"
    assert events_of(row).last().data["rule"] == recovery.STOPPED


def test_what_a_worker_gives_back_is_ended_without_a_second_grace(kind, monkeypatch, w1):
    row = ErrandFactory(status="doing", owner=w1, process=ProcessId.current().to_json())
    graces = []
    monkeypatch.setattr(recovery, "end_recorded", lambda process, grace: graces.append(grace) or "gone")

    assert recovery.release(kind, claim_of(row), w1)

    assert graces == [0.0]


def test_a_row_is_held_as_long_as_it_has_the_owner_and_the_token_of_the_claim(kind, w1, w2):
    row = ErrandFactory(status="doing", owner=w1)
    claim = claim_of(row)

    assert recovery.is_held(kind, claim)

    assert not recovery.is_held(kind, claim_of(row, owner=w2))
    recovery.release(kind, claim, w1)
    assert not recovery.is_held(kind, claim)


@pytest.mark.parametrize("status", ["queued", "done", "cancelled"])
def test_a_worker_gives_back_nothing_that_it_does_not_hold(kind, status, w1):
    row = ErrandFactory(status=status)
    before = columns_of(row)

    assert not recovery.release(kind, claim_of(row, owner=w1), w1)

    assert columns_of(row) == before


def test_a_row_that_is_gone_is_not_given_back(kind, w1):
    claim = claim_of(row := ErrandFactory(status="doing"))
    row.delete()

    assert not recovery.release(kind, claim, w1)
