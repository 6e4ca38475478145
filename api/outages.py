"""Recognises failures that are not bugs in ADE: a full disk, an unavailable database, or too much load. Each has its
own code, and is reported as an API error or an error page.
"""

import errno
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from psycopg_pool import PoolTimeout, TooManyRequests

from api.errors import Problem, is_for_programs, response_of
from work import health
from work.sqlserver import errors as sqlserver

RETRY_SECONDS = 5
PROBE_SECONDS = 2.0
# Number of SQLite VM instructions between two checks of the time limit, which makes some thousand checks a second.
STEPS = 20_000
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# If the disk fills up while SQLite writes its log, it reports a write error instead of SQLITE_FULL.
_SQLITE_WRITE_ERRORS = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_FSYNC"}

log = structlog.get_logger(__name__)


def problem_of(error: BaseException | None) -> Problem | None:
    """Return the problem that describes the outage, or None if the error is a bug in ADE."""
    chain: dict[int, BaseException] = {}
    while error is not None and id(error) not in chain:
        chain[id(error)] = error
        error = error.__cause__ or error.__context__
    causes = chain.values()
    if any(map(is_full_disk, causes)):
        return disk_full()
    # Ask the database: a pool raises the same error if it can't connect as if all its connections are in use.
    is_pool = any(isinstance(each, PoolTimeout | TooManyRequests) for each in causes)
    if is_pool and health.database_answers(PROBE_SECONDS):
        return _problem("busy", "All database connections of this web process are in use. Try again in a moment.")
    if any(map(is_cancelled_query, causes)):
        return _problem("too_slow", "The query took too long and was cancelled. Request less, or try again later.")
    is_away = is_pool or any(isinstance(each, OperationalError | InterfaceError) for each in causes)
    if is_away and connection.vendor == "sqlite" and health.disk_is_full():
        # If the disk is full, SQLite can't even open a database, because it needs space for its WAL files.
        return disk_full()
    if is_away:
        return _problem("unavailable", "The database is unavailable. Try again in a moment.")
    return None


def disk_full() -> Problem:
    return _problem("disk_full", "The disk is full. Free some space on the server, then try again.")


def is_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorname", "") in _SQLITE_WRITE_ERRORS
    return isinstance(error, psycopg.errors.DiskFull)


def is_cancelled_query(error: BaseException) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT"
    return isinstance(error, psycopg.errors.QueryCanceled) or sqlserver.is_timeout(error)


def answer_outages(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return middleware that limits how long reads may take on SQLite, and turns outages into error responses."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        # The others enforce the limit themselves: see `pooled` in config/databases.py.
        if connection.vendor != "sqlite" or request.method not in SAFE:
            return get_response(request)
        with connection.execute_wrapper(limit_time):
            try:
                return get_response(request)
            finally:
                # The view may have closed the connection.
                with suppress(sqlite3.ProgrammingError):
                    if connection.connection is not None:
                        connection.connection.set_progress_handler(None, 0)

    answer.process_exception = answer_to  # type: ignore[attr-defined]  # Django looks for it here
    return answer


def answer_to(request: HttpRequest, error: BaseException | None) -> HttpResponseBase | None:
    problem = problem_of(error)
    if problem is None:
        return None
    log.error("web.outage", path=request.path, code=problem.code, error=str(error).strip())
    if is_for_programs(request.path):
        return response_of(problem)
    text = f"{problem.message}\n"
    return HttpResponse(text, "text/plain; charset=utf-8", problem.answered, headers=problem.headers)


def _problem(code: str, message: str) -> Problem:
    return Problem(code, message, headers={"Retry-After": str(RETRY_SECONDS)})


def limit_time(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement with a time limit. The limit stays set until the next statement, because SQLite computes rows
    while they are fetched.
    """
    until = time.monotonic() + settings.ADE_WEB_STATEMENT_SECONDS
    context["connection"].connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    return execute(sql, params, many, context)
