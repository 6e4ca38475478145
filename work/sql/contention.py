"""Distinguishes the error "the database is busy, try again" from all other errors."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, OperationalError, connection

# Serialization failure and deadlock: the database aborted this transaction in favour of another one, which is done now.
_GIVEN_UP = frozenset({"40001", "40P01"})
# Lock timeout: the row will probably still be locked at the next try.
_LOCKED = frozenset({"55P03"})
# Parts of the messages of SQLite, and of SQL Server for a deadlock.
_PHRASES = ("database is locked", "database table is locked", "deadlock victim")
# Enough for a deadlock or two. If a write still fails, there is a real problem, and its error is raised.
_TRIES = 5

# For threads that must not be held up. A row that stays locked for longer will not be free soon.
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
    """Write, and retry if the database aborted the write for another one. Inside a transaction do not retry, because
    only its owner can repeat it.
    """
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
    """Make this thread's connection wait for a locked row no longer than LOCK_TIMEOUT_MS."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
