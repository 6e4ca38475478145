"""Logs a database outage once per process, even if many of its threads notice it."""

import time
from threading import Lock

import structlog
from django.db import Error, connection

from work.sql.contention import is_contention

REMIND_SECONDS = 60.0

log = structlog.get_logger(__name__)

_lock = Lock()
# When the outage began, by the monotonic clock. None while no outage is known.
_away_since: float | None = None
_logged_at = 0.0


def is_outage(error: BaseException) -> bool:
    """Return whether the error means that the database is unavailable. Log the outage at its start and every minute."""
    global _away_since, _logged_at
    if not isinstance(error, Error) or is_contention(error) or _answers():
        return False
    now, text = time.monotonic(), str(error).strip()
    with _lock:
        if _away_since is None:
            _away_since = _logged_at = now
            log.warning("worker.database_away", error=text)
        elif now - _logged_at >= REMIND_SECONDS:
            _logged_at = now
            log.warning("worker.database_still_away", seconds=round(now - _away_since), error=text)
    return True


def record_answer() -> None:
    """Record that the database has answered. Log the end of the outage if there was one."""
    global _away_since
    # Check without the lock first. There is hardly ever an outage, and without one no thread should wait for the lock.
    if _away_since is None:
        return
    with _lock:
        if _away_since is not None:
            log.warning("worker.database_back", seconds=round(time.monotonic() - _away_since))
            _away_since = None


def _answers() -> bool:
    # After a failed connect, Django has no connection object. If there is one, it may be dead.
    return connection.connection is not None and connection.is_usable()
