"""Checks whether the database has all migrations of this code, and waits until it does."""

import time

import structlog
from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from work import outages

LOOK_SECONDS = 1.0

log = structlog.get_logger(__name__)


def behind() -> str:
    """Return what is missing in words, or an empty string. Raises the database's errors."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return ""
    return f"{len(plan)} migrations are not applied, starting with {plan[0][0]}; run `manage.py migrate`"


def await_schema() -> None:
    """Wait for a database that starts later than the worker, or is migrated later.

    Raise CommandError after ADE_DATABASE_WAIT_SECONDS.
    """
    until = time.monotonic() + settings.ADE_DATABASE_WAIT_SECONDS
    said = ""
    while missing := _missing():
        if time.monotonic() >= until:
            seconds = settings.ADE_DATABASE_WAIT_SECONDS
            raise CommandError(f"{missing}. Waited for {seconds} s (ADE_DATABASE_WAIT_SECONDS).")
        if missing != said and not missing.startswith("The database"):
            log.warning("worker.waits_for_migrations", reason=missing)
        said = missing
        time.sleep(min(LOOK_SECONDS, max(0.0, until - time.monotonic())))


def _missing() -> str:
    try:
        missing = behind()
    except Error as error:
        connection.close()
        if not outages.met(error):
            raise
        found = " ".join(str(error).split())
        return f"The database is unavailable: {found}; check DATABASE_URL, and whether the server is running"
    outages.over()
    return missing
