"""Checks whether the database has all migrations of this code, waits for them, and refuses a database of ADE 0.1."""

import time
from collections.abc import Container

import structlog
from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.text import capfirst

from work import outages

LOOK_SECONDS = 1.0
# ADE 0.2 started over with one migration per app. A database of ADE 0.1 has migration OLD but not migration NEW.
OLD, NEW = ("documents", "0001_initial"), ("workspaces", "0001_initial")
TOO_OLD = "the database was created by ADE 0.1 and cannot be upgraded"
ADVICE = "set DATABASE_URL to a new, empty database, or use the version that created it"
REFUSAL = f"{TOO_OLD}; {ADVICE}"

log = structlog.get_logger(__name__)


def missing_migrations() -> str:
    """Return a message about missing migrations, or an empty string. The database's errors are not caught."""
    executor = MigrationExecutor(connection)
    if is_too_old(executor.loader.applied_migrations):
        return REFUSAL
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return ""
    return f"{len(plan)} migrations are not applied, starting with {plan[0][0]}; run `manage.py migrate`"


def is_too_old(applied: Container[tuple[str, str]]) -> bool:
    return OLD in applied and NEW not in applied


def await_schema() -> None:
    """Wait until the database is available and migrated, which may happen only after the worker has started.

    Raise CommandError after ADE_DATABASE_WAIT_SECONDS, or at once if waiting cannot help.
    """
    seconds = settings.ADE_DATABASE_WAIT_SECONDS
    until = time.monotonic() + seconds
    last_reason = ""
    while True:
        try:
            reason, is_available = missing_migrations(), True
        except Error as error:
            connection.close()
            if not outages.is_outage(error):
                raise
            text = " ".join(str(error).split())
            reason = f"The database is unavailable: {text}; check DATABASE_URL, and whether the server is running"
            is_available = False
        else:
            outages.record_answer()
        if not reason:
            return
        if reason == REFUSAL:
            raise CommandError(f"{capfirst(REFUSAL)}.")
        if time.monotonic() >= until:
            raise CommandError(f"{reason}. Waited for {seconds} s (ADE_DATABASE_WAIT_SECONDS).")
        if is_available and reason != last_reason:
            log.warning("worker.waits_for_migrations", reason=reason)
        last_reason = reason
        time.sleep(min(LOOK_SECONDS, max(0.0, until - time.monotonic())))
