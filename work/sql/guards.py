"""Makes PostgreSQL and SQLite refuse to change or delete events, except for deletion inside `retention`.

On SQL Server only the models refuse.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from work.sql import triggers
from work.sql.triggers import run

FUNCTION = "refuse_to_change_history"
REFUSAL = "events are append-only: history is not changed, and only retention deletes it"
# They mark a transaction in which events may be deleted: on PostgreSQL a setting that ends with the transaction, on
# SQLite a table that has a row only inside such a transaction.
SETTING, TABLE = "ade.event_retention", "event_retention"
TRIGGERS = {"events_stay": "UPDATE", "events_remain": "DELETE", "events_are_kept": "TRUNCATE"}


@contextmanager
def retention() -> Iterator[None]:
    """Allow events to be deleted in this transaction. They can never be changed."""
    with transaction.atomic():
        _switch("on", f"INSERT INTO {TABLE} (is_open) VALUES (1)")  # noqa: S608  # a constant
        yield
        _switch("off", f"DELETE FROM {TABLE}")  # noqa: S608  # a constant


def make() -> None:
    if connection.vendor == "postgresql":
        # The triggers fire once per statement and not per row, because retention deletes many rows.
        run(
            f"CREATE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF TG_OP = 'UPDATE' OR current_setting('{SETTING}', true) IS DISTINCT FROM 'on' THEN"
            f" RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END IF; RETURN NULL; END $$"
        )
        for name, refused in TRIGGERS.items():
            run(f"CREATE TRIGGER {name} BEFORE {refused} ON events FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}()")
    if connection.vendor == "sqlite":
        run(f"CREATE TABLE {TABLE} (is_open integer NOT NULL)")
        refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        run(f"CREATE TRIGGER events_stay BEFORE UPDATE ON events {refuse}")
        run(
            f"CREATE TRIGGER events_remain BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM {TABLE}) {refuse}"  # noqa: S608  # a constant
        )


def drop() -> None:
    triggers.drop([("events", name) for name in TRIGGERS], FUNCTION)
    if connection.vendor == "sqlite":
        run(f"DROP TABLE IF EXISTS {TABLE}")


def _switch(state: str, on_sqlite: str) -> None:
    if connection.vendor == "postgresql":
        run(f"SET LOCAL {SETTING} = '{state}'")
    if connection.vendor == "sqlite":
        run(on_sqlite)
