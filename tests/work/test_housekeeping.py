from threading import Event as Flag

import pytest
from django.conf import settings
from django.db import connection

from work import recovery
from work.housekeeping import HousekeepingThread, RecoveryThread
from work.threads import SteadyThread
from work.work_types import PeriodicTask, WorkType, all_work_types


@pytest.fixture
def rung():
    return []


def housekeeping(tasks, rung):
    kind = next(all_work_types())
    return HousekeepingThread([WorkType(kind.states, periodic_tasks=tasks)], "w1", Flag(), rung.append)


def raises(owner):
    raise ValueError("a bug")


@pytest.mark.django_db(transaction=True)
def test_a_chore_that_raises_keeps_no_other_from_being_done(rung, caplog):
    done = []
    hands = housekeeping((PeriodicTask(raises), PeriodicTask(done.append)), rung)

    hands.do_tasks(is_woken=True)

    assert done == ["w1"]
    assert "task_failed" in caplog.text


@pytest.mark.django_db
def test_a_chore_that_did_something_rings_and_is_asked_for_more_at_once(rung):
    hands = housekeeping((PeriodicTask(lambda owner: 1),), rung)

    hands.do_tasks(is_woken=True)

    assert len(rung) == 1
    assert hands.woken.is_set()


@pytest.mark.django_db
def test_a_chore_that_found_nothing_waits_for_its_tick(rung):
    hands = housekeeping((PeriodicTask(lambda owner: 0),), rung)

    hands.do_tasks(is_woken=True)

    assert rung == []
    assert not hands.woken.is_set()


@pytest.mark.django_db
def test_chores_have_their_ticks(rung):
    done = []
    hands = housekeeping(
        (PeriodicTask(lambda owner: done.append("each")), PeriodicTask(lambda owner: done.append("third"), every=3)),
        rung,
    )

    for hands.ticks in (1, 2, 3):
        hands.do_tasks(is_woken=False)

    assert done == ["each", "each", "each", "third"]


@pytest.mark.django_db
@pytest.mark.only_on("postgresql")
def test_a_chore_does_not_wait_for_a_locked_row(rung):
    asked = []

    def ask(owner):
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            asked.append(cursor.fetchone()[0])

    housekeeping((PeriodicTask(ask),), rung).do_tasks(is_woken=True)

    assert asked == ["1s"]


@pytest.mark.django_db
def test_a_kind_whose_recovery_fails_keeps_no_other_from_being_recovered(monkeypatch, caplog):
    seen = []

    def look(kind, by):
        seen.append(kind.name)
        raise ValueError("a bug")

    monkeypatch.setattr(recovery, "_rescue_kind", look)

    assert recovery.rescue_expired(list(all_work_types()), "w1") == 0

    assert seen == [kind.name for kind in all_work_types()]
    assert "kind_failed" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_what_recovery_moved_is_looked_at_at_once(monkeypatch, rung):
    monkeypatch.setattr(settings, "ADE_TICK_SECONDS", 0)
    monkeypatch.setattr(recovery, "rescue_expired", lambda kinds, by: 1)
    kinds = list(all_work_types())

    RecoveryThread(kinds, "w1", Flag(), rung.append).do_round()

    assert rung == kinds


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_thread_goes_on_whatever_happens(monkeypatch, error):
    monkeypatch.setattr("work.threads.FIRST_PAUSE_SECONDS", 0.01)
    stopping = Flag()
    rounds = []

    class Clumsy(SteadyThread):
        def do_round(self):
            rounds.append(1)
            if len(rounds) == 3:
                stopping.set()
            raise error

    thread = Clumsy("clumsy", stopping)
    thread.start()
    thread.join(10)

    assert len(rounds) == 3
