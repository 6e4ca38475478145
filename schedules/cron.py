"""The slots of a schedule: moments in UTC, computed from the local time of a zone.

When clocks go forward, all slots in the skipped hour fall together on the moment after it. When clocks go back, the
repeated hour has its slots only the first time. So a job that runs every few minutes all year should be declared in
UTC.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

FIELDS = 5
# After a longer outage of all workers, only the slots of this last period are counted one by one.
COUNTED = timedelta(days=31)
# Contains several slots of most schedules.
FIRST_SPAN = timedelta(hours=1)
# A schedule that has slots at all has some after any moment.
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
    """Like `slots_between`, newest first. Schedules can only be read forwards, so read in spans of doubling length."""
    span = FIRST_SPAN
    while until > after:
        begin = max(after, until - span)
        yield from reversed(list(slots_between(cron, time_zone, begin, until)))
        until, span = begin, 2 * span


def due_slots(cron: str, time_zone: str, after: datetime, until: datetime) -> list[datetime]:
    """Like `slots_between`, but for a long period return only its first slot and the slots of the last days."""
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
    # Local time without a zone, which has no daylight saving time.
    times = croniter(cron, after.astimezone(zone).replace(tzinfo=None))
    last = after
    while True:
        slot = _moment(times.get_next(datetime), zone)
        # Skip a moment that occurs again, and slots in a repeated hour.
        if slot > last:
            last = slot
            yield slot


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment of a local time, or the one at which the clocks went forward over it."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # The two offsets bound the search.
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
