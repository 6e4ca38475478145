"""One clock for all hosts: the database's time, carried forward by the monotonic clock between measurements.

Deadlines are computed in Python from `now()`. If a host's clock is set, nothing changes until the next measurement. If
a measurement finds such a jump, recovery pauses for the length of one lease (see `jumped_within`).
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection

# A larger difference means that a clock was set: no network is slow enough to explain it.
JUMP_SECONDS = 5.0
# The maximum age of a measurement in a process without a heartbeat.
MEASURE_EVERY_SECONDS = 60.0

_NOW_SQL = {
    # Not now(): it returns when the transaction began, and the transaction may have waited for a lock since.
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
        # SQLite runs on this host, so its clock is ours. Its CURRENT_TIMESTAMP has only whole seconds.
        return _own_clock()
    measurements = []
    for _ in range(3):
        with connection.cursor() as cursor:
            began_at = time.monotonic()
            cursor.execute(sql)
            (at,) = cursor.fetchone()
        took = time.monotonic() - began_at
        measurements.append((took, at, began_at + took / 2))
    # The quickest answer is the most precise. The first query may have had to open the connection.
    _, at, middle = min(measurements)
    return Anchor(at.astimezone(UTC), middle)
