"""A pytest plugin that makes the product behave as on SQL Server while tests use their own database, and compiles every
ORM query for SQL Server too. The file named in ADE_MSSQL_RECORD receives the results as JSON.

This way, every query that any test reaches is covered, also in future tests.
"""

import json
import os
import sys
import threading

import pytest
from django.core.exceptions import EmptyResultSet
from django.db import connection as real
from django.db.models.sql import Query
from django.db.models.sql.compiler import (
    SQLAggregateCompiler,
    SQLCompiler,
    SQLDeleteCompiler,
    SQLInsertCompiler,
    SQLUpdateCompiler,
)

from tests.mssql import server

# These modules query the database without the ORM: for its clock, and with statements compiled in advance.
AS_THEY_ARE = {"work.clock", "work.sql.compiled", "work.invariants", "work.sql.statements"}

compiled: dict[str, object] = {}
refused: dict[str, object] = {}
# The SQL for the database of the test of what has been compiled.
seen: set[object] = {None}


class Thread(threading.local):
    """Tracks per thread whether it is compiling: the other threads keep using the database of the test."""

    compiles = False
    # The SQL of the latest query for the database of the test.
    latest = None


THREAD = Thread()


class OfThread:
    """Passes the SQL Server connection to a thread that is compiling, and the real connection to the others."""

    def __init__(self, shim):
        self._shim = shim

    def __getattr__(self, name):
        return getattr(self._shim if THREAD.compiles else real, name)


class Believed:
    """The database of the test with the vendor and the features of SQL Server."""

    def __init__(self, shim):
        self.vendor, self.features = shim.vendor, shim.features

    def cursor(self):
        return Cursor(real.cursor())

    def __getattr__(self, name):
        return getattr(real, name)


class Cursor:
    """Records the statements that the product writes itself, and makes those that the database of the test knows."""

    def __init__(self, cursor):
        self._cursor = cursor

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self._cursor.__exit__(*error)

    def execute(self, sql, params=None):
        compiled.setdefault(sql, _test())
        return None if sql.startswith("SET ") else self._cursor.execute(sql, params)

    def __getattr__(self, name):
        return getattr(self._cursor, name)


@pytest.fixture(autouse=True, scope="session")
def on_sql_server():
    shim = server.connection()
    with pytest.MonkeyPatch.context() as patch:
        believed = Believed(shim)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in OURS and name not in AS_THEY_ARE and getattr(module, "connection", None) is real:
                patch.setattr(module, "connection", believed)
        _record_queries(patch, shim)
        _record_kept_queries(patch, shim)
        yield


OURS = {
    *("work", "schedules", "workspaces", "documents", "builds", "runs"),
    *("feeds", "webhooks", "api", "console", "config"),
}


def _record_queries(patch, shim):
    patch.setattr(Query, "get_compiler", _compiler_of(shim))
    for compiler in (SQLCompiler, SQLInsertCompiler, SQLUpdateCompiler, SQLDeleteCompiler, SQLAggregateCompiler):
        patch.setattr(compiler, "as_sql", _remembering(compiler.as_sql))
    for compiler in (SQLCompiler, SQLInsertCompiler):
        patch.setattr(compiler, "execute_sql", _recording(compiler.execute_sql, shim))


def _remembering(as_sql):
    def remember(self, *args, **options):
        made = as_sql(self, *args, **options)
        if not THREAD.compiles:
            # An insert may be several statements, each with its parameters.
            THREAD.latest = made[0][0] if isinstance(made, list) else made[0]
        return made

    return remember


def _recording(execute_sql, shim):
    def execute(self, *args, **options):
        # Most queries of a test are those of another: compile only the first.
        THREAD.latest = None
        try:
            return execute_sql(self, *args, **options)
        finally:
            if THREAD.latest not in seen:
                _compile(lambda: _again(self, shim).as_sql())
                seen.add(THREAD.latest)

    return execute


def _compiler_of(shim):
    get_compiler = Query.get_compiler

    def compiler(query, using=None, connection=None, elide_empty=True):
        # For the inner query of an aggregate, Django passes the alias of a database instead of a connection.
        using, connection = (None, shim) if THREAD.compiles else (using, connection)
        return get_compiler(query, using, connection, elide_empty)

    return compiler


def _again(asked, shim):
    compiler = asked.query.clone().get_compiler(connection=shim)
    if isinstance(asked, SQLInsertCompiler) and (len(asked.query.objs) == 1 or _returns_many(shim)):
        compiler.returning_fields = getattr(asked, "returning_fields", None)
    return compiler


def _returns_many(shim):
    return shim.features.can_return_rows_from_bulk_insert


def _record_kept_queries(patch, shim):
    """Record the queries that the product compiles once and keeps."""
    from work.sql import compiled as keeper  # noqa: PLC0415  # Django must be set up first
    from work.sql import statements  # noqa: PLC0415

    for module in (keeper, statements):
        patch.setattr(module, "connection", OfThread(shim))
    ask = keeper.sql_and_params

    def sql_and_params(query, *arguments):
        _compile(lambda: ask(query, *arguments))
        return ask(query, *arguments)

    patch.setattr(keeper, "sql_and_params", sql_and_params)


def _compile(make):
    before, THREAD.compiles = THREAD.compiles, True
    try:
        made = make()
    except EmptyResultSet:
        return  # no database is queried
    except Exception as error:
        refused.setdefault(f"{type(error).__name__}: {error}", _test())
        return
    finally:
        THREAD.compiles = before
    for sql, _params in made if isinstance(made, list) else [made]:
        compiled.setdefault(sql, _test())


def _test():
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]


def pytest_sessionfinish():
    with open(os.environ["ADE_MSSQL_RECORD"], "w") as file:
        json.dump({"compiled": compiled, "refused": refused}, file)
