import pytest
from django.db import OperationalError

from tests.factories import ErrandFactory, claim_of, events_of, told
from tests.testwork import lifecycle as errands
from work import journal, lifecycle
from work.journal import BATCH, Journal
from work.processes.output import Line

pytestmark = pytest.mark.django_db(transaction=True)


class ChildOf:
    """A fake child with the interface that a journal uses."""

    class process_id:  # stands for an attribute
        @staticmethod
        def to_json():
            return {"host": "here", "machine": "m", "pid": 7, "start_ticks": 1}

    def trust_until(self, moment):
        self.trusted = moment


@pytest.fixture
def errand():
    return ErrandFactory(status="doing")


@pytest.fixture
def claim(errand):
    return claim_of(errand)


@pytest.fixture
def away(monkeypatch):
    """Return a function that makes the next writes of this kind fail as without a database."""

    def take(name, times):
        write, left = getattr(lifecycle, name), [times]

        def failing(*arguments):
            if left[0]:
                left[0] -= 1
                raise OperationalError("the server went away")
            return write(*arguments)

        monkeypatch.setattr(lifecycle, name, failing)

    return take


@pytest.fixture
def always_due(monkeypatch):
    monkeypatch.setattr(journal, "DUE_SECONDS", 0.0)


def test_what_is_told_waits_a_while_and_is_written_with_the_end(claim, errand):
    kept = Journal(claim)
    kept.tell("NOTE", "one", {"n": 1})
    kept.lines([Line("stdout", "two")])

    assert told(errand)[2:] == []
    assert errands.succeed(claim, "done")

    assert told(errand)[2:] == ["NOTE", "LOG", "ERRAND_DONE"]
    assert [e.message for e in events_of(errand)[2:4]] == ["one", "two"]
    assert events_of(errand).get(kind="LOG").data == {"stream": "stdout"}


def test_many_lines_do_not_wait(claim, errand):
    kept = Journal(claim)

    kept.lines([Line("stderr", f"line {n}") for n in range(BATCH)])

    assert told(errand).count("LOG") == BATCH


def test_what_has_waited_long_enough_is_written(claim, errand, always_due):
    kept = Journal(claim)
    kept.tell("NOTE")

    assert kept.why_stop() is None

    assert told(errand)[2:] == ["NOTE"]
    assert errands.succeed(claim, "done")
    assert told(errand)[2:] == ["NOTE", "ERRAND_DONE"]


def test_a_database_that_is_away_is_asked_again_and_nothing_is_lost(claim, errand, always_due, away):
    away("record_many", 2)
    kept = Journal(claim)
    for number in range(3):
        kept.tell("NOTE", str(number))
        kept.look()

    assert [e.message for e in events_of(errand)[2:]] == ["0", "1", "2"]


def test_a_database_that_is_away_is_not_asked_with_every_line(claim, errand, away):
    kept = Journal(claim)
    away("record_many", times=1)
    kept.lines([Line("stdout", f"line {number}") for number in range(BATCH)])

    kept.lines([Line("stdout", "one more")])

    assert "LOG" not in told(errand)
    kept.write()
    assert told(errand).count("LOG") == BATCH + 1


def test_what_is_too_much_to_wait_is_dropped_and_that_is_told(claim, errand, monkeypatch, away):
    monkeypatch.setattr(journal, "MOST_WAITING", 3)
    away("record_many", 0)
    kept = Journal(claim)
    for number in range(5):
        kept.tell("NOTE", str(number))

    kept.write()

    assert [e.message for e in events_of(errand)[2:]] == [
        "0",
        "1",
        "2",
        "[2 lines are missing: the database was unavailable]",
    ]


def test_the_child_is_recorded_and_ends_with_the_claim(claim, errand):
    child = ChildOf()

    Journal(claim).keep(child)

    errand.refresh_from_db()
    assert errand.process == child.process_id.to_json()
    assert child.trusted == claim.trusted_until


def test_a_child_that_cannot_be_recorded_just_then_is_recorded_later(claim, errand, always_due, away):
    away("record_process", 2)
    kept = Journal(claim)

    kept.keep(ChildOf())
    reasons = [kept.why_stop() for _ in range(3)]

    errand.refresh_from_db()
    assert reasons == [None] * 3
    assert errand.process == ChildOf.process_id.to_json()


def test_whoever_keeps_a_journal_of_a_claim_that_is_gone_is_told_to_stop(errand, always_due):
    claim = claim_of(errand, token=2)
    kept = Journal(claim)
    kept.tell("NOTE")

    assert kept.why_stop() == "lease_lost"

    assert told(errand)[2:] == ["LATE_WRITE_REFUSED"]
