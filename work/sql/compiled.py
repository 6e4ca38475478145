"""Querysets whose SQL is compiled once per process, because compiling a query takes longer than running it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from work.sql import statements
from work.sql.statements import Row, adapt, literal

# The function is the key of the compiled SQL. So pass a module function or manager method, never a new lambda.
Query = Callable[..., "QuerySet[Any]"]


def rows(query: Query, *arguments: Any) -> list[Row]:
    return statements.rows(*sql_and_params(query, *arguments))


def sql_and_params(query: Query, *arguments: Any) -> tuple[str, list[Any]]:
    """Return the SQL of `query(*arguments)` and its parameters. All values except `arguments` are literals in it."""
    sql, positions = _compiled(connection.vendor, query, tuple(map(type, arguments)))
    return sql, [adapt(arguments[position]) for position in positions]


@cache
def _compiled(vendor: str, query: Query, kinds: tuple[Any, ...]) -> tuple[str, list[int]]:
    """Return the SQL with placeholders, and for each placeholder the index of its argument."""
    stand_ins: list[Any] = []
    for position, kind in enumerate(kinds):
        # Replace each argument with a value that no other part of a query contains.
        values = {
            datetime: datetime(9999, 12, 31, position, tzinfo=UTC),
            int: -(2**53) + position,
            str: f"argument {position} of a compiled query",
        }
        stand_ins.append(values[kind])
    sql, params = query(*stand_ins).query.get_compiler(connection=connection).as_sql()
    arguments = {adapt(stand_in): position for position, stand_in in enumerate(stand_ins)}
    filled = sql % tuple("%s" if param in arguments else literal(param) for param in params)
    return filled, [arguments[param] for param in params if param in arguments]
