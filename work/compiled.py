"""Querysets whose SQL is made once per process: the ORM takes longer to write it than the database to run it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from work import statements
from work.statements import Row, adapt, literal

# A function of the module or a manager's method, always the same one: what is compiled is kept under it.
Query = Callable[..., "QuerySet[Any]"]


def rows(query: Query, *arguments: Any) -> list[Row]:
    return statements.rows(*sql_and_params(query, *arguments))


def sql_and_params(query: Query, *arguments: Any) -> tuple[str, list[Any]]:
    """The SQL of `query(*arguments)`; everything but the arguments is part of it."""
    sql, positions = _compiled(connection.vendor, query, tuple(map(type, arguments)))
    return sql, [adapt(arguments[position]) for position in positions]


@cache
def _compiled(vendor: str, query: Query, kinds: tuple[Any, ...]) -> tuple[str, list[int]]:
    """The SQL with a place for each argument, and which argument goes where."""
    stand_ins = [_stand_in(kind, position) for position, kind in enumerate(kinds)]
    sql, params = query(*stand_ins).query.get_compiler(connection=connection).as_sql()
    arguments = {adapt(stand_in): position for position, stand_in in enumerate(stand_ins)}
    filled = sql % tuple("%s" if param in arguments else literal(param) for param in params)
    return filled, [arguments[param] for param in params if param in arguments]


def _stand_in(kind: type, position: int) -> Any:
    """A value that nothing else in a query has, for the place of an argument."""
    return {
        datetime: datetime(9999, 12, 31, position, tzinfo=UTC),
        int: -(2**53) + position,
        str: f"argument {position} of a compiled query",
    }[kind]
