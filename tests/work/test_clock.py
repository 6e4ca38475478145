import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from work import clock
from work.clock import Anchor


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    for name in ("_anchor", "_measured", "_jumped_at"):
        monkeypatch.setattr(clock, name, getattr(clock, name))


@pytest.fixture
def database_says(monkeypatch):
    def says(at):
        monkeypatch.setattr(clock, "_database_clock", lambda: Anchor(at, time.monotonic()))

    return says


def test_the_time_is_that_of_the_database(database_says):
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    database_says(noon)

    clock.measure()

    assert noon <= clock.now() < noon + timedelta(seconds=5)


def test_two_hosts_whose_clocks_differ_agree(database_says, monkeypatch):
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    database_says(noon)
    times = []

    for own in (noon + timedelta(minutes=10), noon - timedelta(minutes=10)):
        monkeypatch.setattr(clock, "_anchor", Anchor(own, time.monotonic()))
        clock.measure()
        times.append(clock.now())

    assert abs(times[1] - times[0]) < timedelta(seconds=1)


def test_the_time_does_not_jump_with_the_clock_of_the_host(db, monkeypatch):
    clock.measure()
    before = clock.now()

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr(clock, "datetime", Later)

    assert clock.now() - before < timedelta(seconds=60)


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-1)], ids=["forward", "back"])
def test_a_jump_of_the_clock_is_noticed_for_a_while(database_says, by, monkeypatch):
    database_says(datetime.now(UTC))
    clock.measure()
    database_says(datetime.now(UTC) + by)

    off = clock.measure()

    assert abs(off - by.total_seconds()) < 60
    assert clock.jumped_within(30)
    monkeypatch.setattr(clock, "_jumped_at", time.monotonic() - 31)
    assert not clock.jumped_within(30)


def test_the_first_measurement_is_no_jump(database_says, monkeypatch):
    monkeypatch.setattr(clock, "_measured", False)
    database_says(datetime.now(UTC) + timedelta(minutes=10))

    clock.measure()

    assert not clock.jumped_within(30)


def test_a_small_difference_is_no_jump(database_says):
    database_says(datetime.now(UTC))
    clock.measure()
    database_says(datetime.now(UTC) + timedelta(seconds=2))

    clock.measure()

    assert not clock.jumped_within(30)


@pytest.mark.django_db
def test_a_database_with_a_clock_is_asked_for_the_moment_and_not_for_the_start_of_its_transaction():
    clock.measure()
    first = clock.now()
    clock.measure()

    assert clock.now() > first
    assert connection.vendor in ("sqlite", *clock._NOW_SQL)
    assert "now()" not in clock._NOW_SQL.values()


def test_times_have_a_zone():
    assert clock.now().tzinfo is not None
