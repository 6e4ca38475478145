from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedules import cron
from schedules.cron import BadSchedule
from tests.schedules.declared import frequent

pytestmark = pytest.mark.once

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]


def slots(line, zone, after, days):
    return list(cron.slots_between(line, zone, after, after + days * DAY))


def clock(moment, zone):
    return moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M")


def test_the_first_moment_is_not_among_them_and_the_last_is():
    found = list(cron.slots_between("*/15 * * * *", "UTC", NOON, NOON + timedelta(minutes=30)))

    assert found == [NOON + timedelta(minutes=15), NOON + timedelta(minutes=30)]


def test_slots_are_read_off_the_clocks_of_the_zone():
    assert slots("0 6 * * *", "Asia/Kathmandu", NOON, 1) == [datetime(2026, 3, 2, 0, 15, tzinfo=UTC)]
    assert slots("0 6 * * *", "America/St_Johns", NOON, 1) == [datetime(2026, 3, 2, 9, 30, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("line", "zone", "day", "told"),
    [
        ("30 2 * * *", "Europe/Berlin", datetime(2025, 3, 29, 12, tzinfo=UTC), ["30 03:00"]),
        ("0 3 * * *", "Europe/Berlin", datetime(2025, 3, 29, 12, tzinfo=UTC), ["30 03:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", datetime(2025, 10, 4, 12, tzinfo=UTC), ["05 02:30"]),
        ("0 0 * * *", "America/Havana", datetime(2025, 3, 8, 12, tzinfo=UTC), ["09 01:00"]),
    ],
)
def test_what_lies_in_the_hour_that_is_not_there_comes_right_after_it_and_once(line, zone, day, told):
    assert [clock(slot, zone) for slot in slots(line, zone, day, 1)] == told


@pytest.mark.parametrize(
    ("line", "zone", "day", "told"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2025, 10, 25, 12, tzinfo=UTC),
            datetime(2025, 10, 26, 0, 30, tzinfo=UTC),
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            datetime(2025, 4, 5, 12, tzinfo=UTC),
            datetime(2025, 4, 5, 14, 45, tzinfo=UTC),
        ),
    ],
)
def test_what_lies_in_the_hour_that_comes_twice_comes_the_first_time_only(line, zone, day, told):
    assert slots(line, zone, day, 1) == [told]


def test_a_day_that_was_left_out_has_its_slot_at_the_beginning_of_the_next():
    """Samoa crossed the date line at the end of 2011."""
    found = slots("0 12 * * *", "Pacific/Apia", datetime(2011, 12, 29, 0, 0, tzinfo=UTC), 3)

    assert [clock(slot, "Pacific/Apia") for slot in found] == ["29 12:00", "31 00:00", "31 12:00", "01 12:00"]


def test_every_few_minutes_in_utc_goes_on_through_both():
    for day in (datetime(2025, 3, 29, 12, tzinfo=UTC), datetime(2025, 10, 25, 12, tzinfo=UTC)):
        found = slots("*/15 * * * *", "UTC", day, 1)

        assert [after - before for before, after in pairwise(found)] == [timedelta(minutes=15)] * 95


@settings(max_examples=60, deadline=None)
@given(
    line=st.sampled_from(["*/15 * * * *", "30 2 * * *", "0 * * * *", "45 1 1 * *", "0 6 * * 1-5", "59 23 * * *"]),
    zone=st.sampled_from(ZONES),
    hours=st.floats(0, 16 * 365 * 24),
    cut=st.floats(0, 1),
)
def test_wherever_one_begins_to_look_the_slots_are_the_same(line, zone, hours, cut):
    start = datetime(2011, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    whole = slots(line, zone, start, 4)

    middle = start + cut * 4 * DAY
    parts = [
        *cron.slots_between(line, zone, start, middle),
        *cron.slots_between(line, zone, middle, start + 4 * DAY),
    ]

    assert parts == whole
    assert all(cron.is_slot(line, zone, slot) for slot in whole)
    assert whole == sorted(set(whole))


def test_a_moment_between_slots_is_none():
    assert not cron.is_slot("*/15 * * * *", "UTC", NOON + timedelta(minutes=1))
    assert not cron.is_slot("*/15 * * * *", "UTC", NOON + timedelta(microseconds=1))


@pytest.mark.parametrize(
    "line", ["", "* * * *", "* * * * * *", "61 * * * *", "@daily", "every day at six", "* * 32 * *"]
)
def test_what_is_no_schedule_is_refused_with_what_was_found(line):
    with pytest.raises(BadSchedule, match="Use the cron fields minute, hour, day, month and weekday"):
        cron.check(line, "UTC")


def test_what_never_has_a_slot_is_refused():
    with pytest.raises(BadSchedule, match="The schedule '0 0 30 2 \\*' never comes due"):
        cron.check("0 0 30 2 *", "UTC")


def test_a_job_whose_schedule_is_none_cannot_be_declared():
    with pytest.raises(BadSchedule):
        replace(frequent, cron="every day")


@pytest.mark.parametrize("zone", ["", "Berlin", "../../etc/passwd", "/etc/passwd", "Europe/Atlantis", "\0"])
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(BadSchedule, match="Unknown time zone"):
        cron.check("* * * * *", zone)
