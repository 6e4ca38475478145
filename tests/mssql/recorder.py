"""A pytest plugin: the product takes its way for SQL Server, on the database of the test, and what the ORM asks that
database is also compiled for SQL Server. All of it goes into the file that ADE_MSSQL_RECORD names, as JSON.

Whatever a test of the product reaches is so compiled, by today's tests and by tomorrow's.
"""

import json
import os
import sys
import threading

import pytest
from django.core.exceptions import EmptyResultSet
from django.db import connection as real
from django.db.models.sql import Query
from django.db.models.sql.compiler import SQLCompiler, SQLInsertCompiler

from tests.mssql import server

# They ask the database by themselves and not through the ORM: for its own time, and what was compiled before.
AS_THEY_ARE = {"work.clock", "work.compiled", "work.invariants", "work.statements"}

compiled: dict[str, object] = {}
refused: dict[str, object] = {}
raw: dict[str, object] = {}


class Thread(threading.local):
    """Others go on with the database of the test meanwhile."""

    compiles = False


THREAD = Thread()


class OfThread:
    """What compiles for SQL Server, to the thread that does just that."""

    def __init__(self, shim):
        self._shim = shim

    def __getattr__(self, name):
        return getattr(self._shim if THREAD.compiles else real, name)


class Believed:
    """The database of the test, in the clothes of SQL Server."""

    def __init__(self, shim):
        self.vendor, self.features = shim.vendor, shim.features

    def __getattr__(self, name):
        return getattr(real, name)


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


OURS = {"work", "documents", "builds", "runs", "feeds", "api", "console", "config"}


def _record_queries(patch, shim):
    patch.setattr(Query, "get_compiler", _compiler_of(shim))
    for compiler in (SQLCompiler, SQLInsertCompiler):
        patch.setattr(compiler, "execute_sql", _recording(compiler.execute_sql, shim))


def _recording(execute_sql, shim):
    def execute(self, *args, **options):
        _compile(lambda: _again(self, shim).as_sql())
        return execute_sql(self, *args, **options)

    return execute


def _compiler_of(shim):
    get_compiler = Query.get_compiler

    def compiler(query, using=None, connection=None, elide_empty=True):
        # An aggregate asks for the compiler of the query within it by the name of a database.
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
    """Those that the product compiles once and keeps."""
    from work import compiled as keeper  # noqa: PLC0415  # not before Django is set up
    from work import statements  # noqa: PLC0415

    for module in (keeper, statements):
        patch.setattr(module, "connection", OfThread(shim))
    ask = keeper.sql_and_params

    def sql_and_params(query, *arguments):
        _compile(lambda: ask(query, *arguments))
        return ask(query, *arguments)

    patch.setattr(keeper, "sql_and_params", sql_and_params)


def _compile(make):
    where = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    before, THREAD.compiles = THREAD.compiles, True
    try:
        made = make()
    except EmptyResultSet:
        return  # nobody is asked
    except Exception as error:
        refused.setdefault(f"{type(error).__name__}: {error}", where)
        return
    finally:
        THREAD.compiles = before
    for sql, _params in made if isinstance(made, list) else [made]:
        compiled.setdefault(sql, where)


def pytest_sessionfinish():
    with open(os.environ["ADE_MSSQL_RECORD"], "w") as file:
        json.dump({"compiled": compiled, "refused": refused}, file)
