"""Computes the slots of a schedule: moments in UTC, from the local time of a time zone.

When clocks go forward, all slots in the skipped hour become a single slot at its end. When clocks go back, the repeated
hour has slots only the first time. So declare a job in UTC if it has to run every few minutes all year.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

FIELDS = 5
# If all workers were down for longer than this, only the slots of this last period are counted one by one.
COUNTED = timedelta(days=31)
# The first span that `newest_first` reads. It contains several slots of most schedules.
FIRST_SPAN = timedelta(hours=1)
# `check` may start from any moment: a schedule that has slots at all has some after it.
ANY = datetime(2026, 1, 1)  # noqa: DTZ001 - local time


class BadSchedule(Exception):
    """The message says what is wrong and what to use instead."""


def check(cron: str, time_zone: str) -> None:
    """Raise BadSchedule if the schedule or the time zone is invalid."""
    if len(cron.split()) != FIELDS or not croniter.is_valid(cron):
        raise BadSchedule(f"Invalid schedule {cron!r}. Use the cron fields minute, hour, day, month and weekday.")
    try:
        ZoneInfo(time_zone)
    except (OSError, ValueError, KeyError) as error:
        raise BadSchedule(f"Unknown time zone {time_zone!r}. Use a name such as Europe/Berlin.") from error
    try:
        croniter(cron, ANY).get_next(datetime)
    except CroniterBadDateError as error:
        raise BadSchedule(f"The schedule {cron!r} never comes due.") from error


def slots_between(cron: str, time_zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the slots after the first moment, up to and including the second."""
    for slot in _slots_after(cron, time_zone, after):
        if slot > until:
            return
        yield slot


def newest_first(cron: str, time_zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Like `slots_between`, but newest first. Schedules can only be read forwards, so this reads spans of doubling
    length.
    """
    span = FIRST_SPAN
    while until > after:
        begin = max(after, until - span)
        yield from reversed(list(slots_between(cron, time_zone, begin, until)))
        until, span = begin, 2 * span


def due_slots(cron: str, time_zone: str, after: datetime, until: datetime) -> list[datetime]:
    """Like `slots_between`, but of a period longer than COUNTED, return only its first slot and the slots of its last
    days.
    """
    first = next_slot(cron, time_zone, after)
    if first > until:
        return []
    return [first, *slots_between(cron, time_zone, max(first, until - COUNTED), until)]


@lru_cache(maxsize=1000)
def next_slot(cron: str, time_zone: str, after: datetime) -> datetime:
    return next(_slots_after(cron, time_zone, after))


def is_slot(cron: str, time_zone: str, moment: datetime) -> bool:
    return next_slot(cron, time_zone, moment - timedelta(seconds=1)) == moment


def _slots_after(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    zone = ZoneInfo(time_zone)
    # Use local time without a zone, because that has no daylight saving time.
    times = croniter(cron, after.astimezone(zone).replace(tzinfo=None))
    last = after
    while True:
        slot = _moment(times.get_next(datetime), zone)
        # Skip a slot at the same moment as the last one, and slots in a repeated hour.
        if slot > last:
            last = slot
            yield slot


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment of a local time. If the clocks skipped that time, return the moment when they did."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # The clocks went forward between the moments that the two offsets give: search there.
    early = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    late = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    before = early.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) / 2
        if middle.astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)
