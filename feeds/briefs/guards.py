"""PostgreSQL and SQLite refuse to change or delete what has been published, whoever asks. On SQL Server only the models
refuse, and foreign keys, by which nothing goes that another row names.
"""

from collections.abc import Iterator

from django.db import connection

TABLES = ("briefs", "brief_items", "brief_articles")
FUNCTION = "refuse_to_change_what_was_published"
REFUSAL = "it is immutable: what was published is not changed"
# What is refused, and the end of the name of its trigger.
REFUSED = {"UPDATE": "stay", "DELETE": "remain"}


def make() -> None:
    if connection.vendor == "postgresql":
        _run(
            f"CREATE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END $$"
        )
    for table, name, refused in _triggers():
        before = f"CREATE TRIGGER {name} BEFORE {refused} ON {table}"
        if connection.vendor == "postgresql":
            _run(f"{before} FOR EACH ROW EXECUTE FUNCTION {FUNCTION}()")
        if connection.vendor == "sqlite":
            _run(f"{before} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END")


def drop() -> None:
    """Also those of a database in which only changes were refused."""
    for table, name, _ in _triggers():
        if connection.vendor == "postgresql":
            _run(f"DROP TRIGGER IF EXISTS {name} ON {table}")
        if connection.vendor == "sqlite":
            _run(f"DROP TRIGGER IF EXISTS {name}")
    if connection.vendor == "postgresql":
        _run(f"DROP FUNCTION IF EXISTS {FUNCTION}()")


def _triggers() -> Iterator[tuple[str, str, str]]:
    for table in TABLES:
        for refused, end in REFUSED.items():
            yield table, f"{table}_{end}", refused


def _run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
