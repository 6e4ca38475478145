"""One clock for all hosts: the database's, carried forward by the monotonic clock between measurements.

Deadlines are computed in Python from `now()`. A jump of a host's clock changes nothing until the next measurement. A
jump that a measurement finds pauses recovery for one lease (see `jumped_within`).
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection

# No slow network explains a larger difference: a clock was set.
JUMP_SECONDS = 5.0
# The maximum age of a measurement in a process without a heartbeat.
MEASURE_EVERY_SECONDS = 60.0

_NOW_SQL = {
    # now() would not do: it is the start of the transaction, which may have waited for a lock.
    "postgresql": "SELECT clock_timestamp()",
    "microsoft": "SELECT SYSDATETIMEOFFSET()",
}


@dataclass(frozen=True, slots=True)
class Anchor:
    at: datetime
    monotonic: float


def _own_clock() -> Anchor:
    return Anchor(datetime.now(UTC), time.monotonic())


_anchor = _own_clock()
_measured = False
_jumped_at: float | None = None


def now() -> datetime:
    return _anchor.at + timedelta(seconds=time.monotonic() - _anchor.monotonic)


def measure() -> float:
    """Measure the database's time. Return by how many seconds this process was off."""
    global _anchor, _measured, _jumped_at
    fresh = _database_clock()
    expected = _anchor.at + timedelta(seconds=fresh.monotonic - _anchor.monotonic)
    off = (fresh.at - expected).total_seconds()
    if _measured and abs(off) > JUMP_SECONDS:
        _jumped_at = time.monotonic()
    _anchor, _measured = fresh, True
    return off


def keep_measured() -> None:
    if not _measured or time.monotonic() - _anchor.monotonic > MEASURE_EVERY_SECONDS:
        measure()


def jumped_within(seconds: float) -> bool:
    return _jumped_at is not None and time.monotonic() - _jumped_at < seconds


def _database_clock() -> Anchor:
    sql = _NOW_SQL.get(connection.vendor)
    if sql is None:
        # SQLite runs on this host, and its CURRENT_TIMESTAMP has whole seconds only.
        return _own_clock()
    measurements = []
    for _ in range(3):
        with connection.cursor() as cursor:
            began_at = time.monotonic()
            cursor.execute(sql)
            (at,) = cursor.fetchone()
        took = time.monotonic() - began_at
        measurements.append((took, at, began_at + took / 2))
    # The quickest answer is the most precise one. The first may have opened the connection.
    _, at, middle = min(measurements)
    return Anchor(at.astimezone(UTC), middle)
