"""Triggers that make PostgreSQL and SQLite refuse what the models refuse. On SQL Server only the models refuse it."""

from collections.abc import Iterable

from django.db import connection


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def drop(triggers: Iterable[tuple[str, str]], function: str) -> None:
    """Drop triggers, which are pairs of table and name, and the function that they call on PostgreSQL."""
    for table, name in triggers:
        if connection.vendor == "postgresql":
            run(f"DROP TRIGGER IF EXISTS {name} ON {table}")
        if connection.vendor == "sqlite":
            run(f"DROP TRIGGER IF EXISTS {name}")
    if connection.vendor == "postgresql":
        run(f"DROP FUNCTION IF EXISTS {function}()")
