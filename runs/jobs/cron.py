"""The slots of a schedule: moments in UTC, read off the clocks of a zone.

Where clocks are put forward, what would lie in the hour that is not there has its slot at the moment after it, once.
Where they are put back, the hour that comes twice has its slots the first time only: a job that is to run every few
minutes all the year round is declared in UTC.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

FIELDS = 5
# After a longer time without any worker only the slots of the last days are counted one by one.
COUNTED = timedelta(days=31)
# As long as several slots of most schedules.
FIRST_SPAN = timedelta(hours=1)
# A schedule that has slots has some after any moment.
ANY = datetime(2026, 1, 1)  # noqa: DTZ001 - on the clock of the wall


class BadSchedule(Exception):
    """Says what was expected and what was found."""


def check(cron: str, time_zone: str) -> None:
    """Raises BadSchedule."""
    if len(cron.split()) != FIELDS or not croniter.is_valid(cron):
        raise BadSchedule(f"expected minute, hour, day, month and weekday as cron has them, found {cron!r}")
    try:
        ZoneInfo(time_zone)
    except (OSError, ValueError, KeyError) as error:
        raise BadSchedule(f"expected a time zone such as Europe/Berlin, found {time_zone!r}") from error
    try:
        croniter(cron, ANY).get_next(datetime)
    except CroniterBadDateError as error:
        raise BadSchedule(f"expected a schedule that has slots, found {cron!r}") from error


def slots_between(cron: str, time_zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Those behind the first moment, up to and with the last."""
    for slot in _slots_behind(cron, time_zone, after):
        if slot > until:
            return
        yield slot


def newest_first(cron: str, time_zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """The same backwards. Schedules are read forwards: piece by piece, each twice as long as the one before."""
    span = FIRST_SPAN
    while until > after:
        begin = max(after, until - span)
        yield from reversed(list(slots_between(cron, time_zone, begin, until)))
        until, span = begin, 2 * span


def due_slots(cron: str, time_zone: str, after: datetime, until: datetime) -> list[datetime]:
    """The same, but of a long time only the slots of the last days; of those before them the first stands for all."""
    first = next_slot(cron, time_zone, after)
    if first > until:
        return []
    return [first, *slots_between(cron, time_zone, max(first, until - COUNTED), until)]


@lru_cache(maxsize=1000)
def next_slot(cron: str, time_zone: str, after: datetime) -> datetime:
    return next(_slots_behind(cron, time_zone, after))


def is_slot(cron: str, time_zone: str, moment: datetime) -> bool:
    return next_slot(cron, time_zone, moment - timedelta(seconds=1)) == moment


def _slots_behind(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    zone = ZoneInfo(time_zone)
    # On the clock of the wall, which knows nothing of summer time.
    times = croniter(cron, after.astimezone(zone).replace(tzinfo=None))
    last = after
    while True:
        slot = _moment(times.get_next(datetime), zone)
        # The same moment again, or one of the hour that had been there before.
        if slot > last:
            last = slot
            yield slot


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return _end_of_gap(wall, zone)


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks were put forward over this time: the offset before it and the one after it lie on both sides."""
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
