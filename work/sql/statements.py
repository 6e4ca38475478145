"""Runs SQL whose text never changes. Where possible the server prepares it, because planning it takes longer than
running it.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import ExecStatus

# Switches preparing on in the driver. The threshold is so high that only statements with `prepare=True` are prepared.
PREPARE_THRESHOLD = 1000

_PLAIN = frozenset({str, int, float, bool})

Row = Sequence[Any]

# Connection -> names of the statements that `peek` has prepared on it.
_peeked: "WeakKeyDictionary[Any, set[bytes]]" = WeakKeyDictionary()


def rows(sql: str, params: Sequence[Any]) -> list[Row]:
    result: list[Row]
    db = connections[DEFAULT_DB_ALIAS]
    if db.vendor != "postgresql" or db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        with db.cursor() as cursor:
            cursor.execute(sql, params)
            result = cursor.fetchall()
            return result
    db.validate_no_broken_transaction()
    db.ensure_connection()
    raw = db.connection
    # Django switches preparing off. Its own cursors bind parameters on the client, so they never prepare anyway.
    raw.prepare_threshold = PREPARE_THRESHOLD
    with db.wrap_database_errors, psycopg.Cursor(raw) as cursor:
        cursor.execute(sql, params, prepare=True)
        result = cursor.fetchall()
        return result


def one(sql: str, params: Sequence[Any]) -> Row | None:
    result = rows(sql, params)
    return result[0] if result else None


def run(sql: str, params: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def peek(sql: str) -> Any:
    """Return the single number that a statement selects. This takes a quarter of the time of `one`; use it to poll."""
    db = connections[DEFAULT_DB_ALIAS]
    if not db.in_atomic_block and not db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        if db.vendor == "postgresql":
            return _peek_prepared(db, sql)
        if db.vendor == "sqlite":
            db.ensure_connection()
            with db.wrap_database_errors:
                return db.connection.execute(sql).fetchone()[0]
    return (one(sql, []) or [None])[0]


def _peek_prepared(db: BaseDatabaseWrapper, sql: str) -> Any:
    db.ensure_connection()
    raw = db.connection
    name = _name(sql)
    with db.wrap_database_errors:
        if name not in _peeked.setdefault(raw, set()):
            raw.pgconn.prepare(name, sql.encode())
            _peeked[raw].add(name)
        result = raw.pgconn.exec_prepared(name, None)
    if result.status == ExecStatus.TUPLES_OK:
        value = result.get_value(0, 0)
        return None if value is None else int(value)
    # On an error, run the statement again in the usual way, so that it raises the usual exception.
    _peeked[raw].discard(name)
    return (one(sql, []) or [None])[0]


@cache
def _name(sql: str) -> bytes:
    return b"peek_" + sha256(sql.encode()).hexdigest()[:16].encode()


def adapt(value: Any) -> Any:
    """Convert a value for the driver. Model fields do the same, but take several times as long."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, dict | list):
        return connection.ops.adapt_json_value(value, None)
    return value


def literal(value: Any) -> str:
    """Format a constant of ADE as SQL. If it were a parameter of a prepared statement, the planner would not see its
    value, and might choose the wrong index.
    """
    value = adapt(value)
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        # SQL Server has no boolean literal, and PostgreSQL accepts no number for a boolean.
        return str(value) if connection.vendor == "postgresql" else str(int(value))
    if isinstance(value, int):
        return str(value)
    quoted = "'" + str(value).replace("'", "''").replace("%", "%%") + "'"
    # Without the N, SQL Server would reduce the text to the characters of its code page.
    return quoted if connection.vendor != "microsoft" or quoted.isascii() else f"N{quoted}"
