"""Telling "the database is busy, ask again" from every other error."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, OperationalError, connection

# Serialization failure and deadlock: the database gave this one up for another, which is done by now.
_GIVEN_UP = frozenset({"40001", "40P01"})
# A lock timeout: whoever holds the row will hold it at the next try too.
_LOCKED = frozenset({"55P03"})
# SQLite, and what MSSQL calls a deadlock victim.
_PHRASES = ("database is locked", "database table is locked", "deadlock victim")
# Enough for a deadlock or two; whoever still loses then has a real problem and hears of it.
_TRIES = 5

T = TypeVar("T")


# For threads on which much depends: whoever holds a row for longer will not be quick.
LOCK_TIMEOUT_MS = 1000


class Contended(Exception):
    """A claim met other claims and got nothing. Try again at the next tick."""


def is_contention(error: BaseException) -> bool:
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) in _GIVEN_UP | _LOCKED or any(p in str(error) for p in _PHRASES)


def _is_worth_another_try(error: BaseException) -> bool:
    return is_contention(error) and getattr(error.__cause__, "sqlstate", None) not in _LOCKED


def patiently(write: Callable[[], T]) -> T:
    """Do a write, again if the database gave it up for another one. In a transaction that is its owner's business."""
    for attempt in range(1, _TRIES + 1):
        try:
            return write()
        except OperationalError as error:
            if connection.in_atomic_block or attempt == _TRIES or not _is_worth_another_try(error):
                raise
        time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311  # jitter
    raise AssertionError("unreachable")


def be_impatient() -> None:
    """From now on this thread's connection gives up on a locked row, instead of waiting for whoever has locked it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
