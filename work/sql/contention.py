"""Distinguishes the error "the database is busy, try again" from all other errors."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error, OperationalError, connection

from work.sqlserver import errors as sqlserver

# Serialization failure and deadlock: the database aborted this transaction in favour of another one, which is done now.
_GIVEN_UP = frozenset({"40001", "40P01", sqlserver.DEADLOCK, sqlserver.CONFLICT})
# Lock timeout: the row will probably still be locked at the next try.
_LOCKED = frozenset({"55P03", sqlserver.LOCKED})
# Parts of SQLite's messages.
_PHRASES = ("database is locked", "database table is locked")
# Enough for a deadlock or two. If a write still fails, there is a real problem, and its error is raised.
_TRIES = 5

# For threads that must not be held up. A row that stays locked for longer will not be free soon.
LOCK_TIMEOUT_MS = 1000

T = TypeVar("T")


class Contended(Exception):
    """A claim conflicted with other claims and got nothing. Try again at the next tick."""


def is_contention(error: BaseException) -> bool:
    if not isinstance(error, Error):
        return False
    return _code(error) in _GIVEN_UP | _LOCKED or any(phrase in str(error) for phrase in _PHRASES)


def patiently(write: Callable[[], T]) -> T:
    """Write, and retry if the database aborted the write for another one. Inside a transaction do not retry, because
    only its owner can repeat it.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return write()
        except OperationalError as error:
            is_over = attempt == _TRIES or _code(error) in _LOCKED or not is_contention(error)
            if connection.in_atomic_block or is_over:
                raise
        time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311  # jitter
    raise AssertionError("unreachable")


def be_impatient(milliseconds: int = LOCK_TIMEOUT_MS) -> None:
    """Limit how long this thread's connection waits for a locked row."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(milliseconds)])
    if connection.vendor == "microsoft":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCK_TIMEOUT {milliseconds}")


def _code(error: BaseException) -> str | int | None:
    """Return the SQL state of an error of PostgreSQL, or the number of an error of SQL Server."""
    return getattr(error.__cause__, "sqlstate", None) or sqlserver.number_of(error)
