"""Distinguishes "the database is busy, try again" from all other errors."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, OperationalError, connection

# Serialization failure and deadlock: the database aborted this transaction for another, which is done by now.
_GIVEN_UP = frozenset({"40001", "40P01"})
# Lock timeout: the row will probably still be locked at the next try.
_LOCKED = frozenset({"55P03"})
# The messages of SQLite, and of a deadlock on SQL Server.
_PHRASES = ("database is locked", "database table is locked", "deadlock victim")
# Enough for a deadlock or two. A write that still fails has a real problem and raises.
_TRIES = 5

# For threads that much depends on: a row that is locked for longer will not be free soon.
LOCK_TIMEOUT_MS = 1000

T = TypeVar("T")


class Contended(Exception):
    """A claim conflicted with other claims and got nothing. Try again at the next tick."""


def is_contention(error: BaseException) -> bool:
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) in _GIVEN_UP | _LOCKED or any(p in str(error) for p in _PHRASES)


def patiently(write: Callable[[], T]) -> T:
    """Write, and try again if the database aborted it for another write. A transaction is left to its owner."""
    for attempt in range(1, _TRIES + 1):
        try:
            return write()
        except OperationalError as error:
            is_locked = getattr(error.__cause__, "sqlstate", None) in _LOCKED
            if connection.in_atomic_block or attempt == _TRIES or is_locked or not is_contention(error):
                raise
        time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311  # jitter
    raise AssertionError("unreachable")


def be_impatient() -> None:
    """Make this thread's connection give up on a locked row after LOCK_TIMEOUT_MS instead of waiting."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
