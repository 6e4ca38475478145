"""Triggers with which PostgreSQL and SQLite refuse the same changes as the models. On SQL Server only the models
refuse.
"""

from collections.abc import Iterable

from django.db import connection


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def drop(triggers: Iterable[tuple[str, str]], function: str) -> None:
    """Drop triggers, given as pairs of table and name, and the function that PostgreSQL's triggers call."""
    for table, name in triggers:
        if connection.vendor == "postgresql":
            run(f"DROP TRIGGER IF EXISTS {name} ON {table}")
        if connection.vendor == "sqlite":
            run(f"DROP TRIGGER IF EXISTS {name}")
    if connection.vendor == "postgresql":
        run(f"DROP FUNCTION IF EXISTS {function}()")
