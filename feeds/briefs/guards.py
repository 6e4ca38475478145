"""Triggers that refuse to change or delete published rows, on PostgreSQL and SQLite. On SQL Server only the models
refuse this, and foreign keys protect rows that other rows refer to.
"""

from collections.abc import Iterator

from django.db import connection

from work.sql import triggers
from work.sql.triggers import run

TABLES = ("briefs", "brief_items", "brief_articles")
FUNCTION = "refuse_to_change_what_was_published"
REFUSAL = "it is immutable: what was published is not changed"
# The refused operation, and the suffix of its trigger's name.
REFUSED = {"UPDATE": "stay", "DELETE": "remain"}


def make() -> None:
    if connection.vendor == "postgresql":
        run(
            f"CREATE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END $$"
        )
    for table, name, refused in _triggers():
        before = f"CREATE TRIGGER {name} BEFORE {refused} ON {table}"
        if connection.vendor == "postgresql":
            run(f"{before} FOR EACH ROW EXECUTE FUNCTION {FUNCTION}()")
        if connection.vendor == "sqlite":
            run(f"{before} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END")


def drop() -> None:
    """Drop the triggers. This also works in a database that has triggers only against updates."""
    triggers.drop([(table, name) for table, name, _ in _triggers()], FUNCTION)


def _triggers() -> Iterator[tuple[str, str, str]]:
    for table in TABLES:
        for refused, end in REFUSED.items():
            yield table, f"{table}_{end}", refused
