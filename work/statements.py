"""Runs SQL that is the same at every call; prepared on the server where it can be, for planning it takes longer."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

# Only what asks for it is prepared; the driver wants a number all the same.
PREPARE_THRESHOLD = 1000

_PLAIN = frozenset({str, int, float, bool})

Row = Sequence[Any]


def rows(sql: str, params: Sequence[Any]) -> list[Row]:
    db = connections[DEFAULT_DB_ALIAS]
    if db.vendor == "postgresql" and not db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return _prepared_rows(db, sql, params)
    with db.cursor() as cursor:
        cursor.execute(sql, params)
        found: list[Row] = cursor.fetchall()
        return found


def one(sql: str, params: Sequence[Any]) -> Row | None:
    found = rows(sql, params)
    return found[0] if found else None


def run(sql: str, params: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def adapt(value: Any) -> Any:
    """As the driver wants it; the fields of models would do the same, at several times the cost."""
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
    """A constant of ours as SQL: the planner of a prepared statement must see it, to know which index will do."""
    value = adapt(value)
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        # SQL Server has no word for it, PostgreSQL no number.
        return str(value) if connection.vendor == "postgresql" else str(int(value))
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''").replace("%", "%%") + "'"


def _prepared_rows(db: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Row]:
    db.validate_no_broken_transaction()
    db.ensure_connection()
    raw = db.connection
    # Django turns this off; its own cursors, which bind on the client, never prepare anyway.
    raw.prepare_threshold = PREPARE_THRESHOLD
    with db.wrap_database_errors, psycopg.Cursor(raw) as cursor:
        cursor.execute(sql, params, prepare=True)
        found: list[Row] = cursor.fetchall()
        return found
