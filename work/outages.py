"""Reports a database outage once per process, however many of its threads meet it."""

import time
from threading import Lock

import structlog
from django.db import Error, connection

from work.contention import is_contention

REMIND_SECONDS = 60.0

log = structlog.get_logger(__name__)

_lock = Lock()
# By the monotonic clock. None while the database answers, as far as is known.
_away_since: float | None = None
_said_at = 0.0


def met(error: BaseException) -> bool:
    """Return whether the error means that the database is away. Log when the outage begins, and then once a minute."""
    global _away_since, _said_at
    if not isinstance(error, Error) or is_contention(error) or _answers():
        return False
    now, text = time.monotonic(), str(error).strip()
    with _lock:
        if _away_since is None:
            _away_since = _said_at = now
            log.warning("worker.database_away", error=text)
        elif now - _said_at >= REMIND_SECONDS:
            _said_at = now
            log.warning("worker.database_still_away", seconds=round(now - _away_since), error=text)
    return True


def over() -> None:
    """Note that the database has answered."""
    global _away_since
    # Nearly always there is no outage, and no thread should wait for the lock then.
    if _away_since is None:
        return
    with _lock:
        if _away_since is not None:
            log.warning("worker.database_back", seconds=round(time.monotonic() - _away_since))
            _away_since = None


def _answers() -> bool:
    # After a failed connect Django has no connection object. An existing one may be dead.
    return connection.connection is not None and connection.is_usable()
