"""What ADE needs of a database on SQL Server. `manage.py migrate` refuses to work without it, `doctor` reports it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core.management.base import CommandError
from django.db import connections

OLDEST = 2019
# OPENJSON, which long lists are read with, needs the first of these two.
LEAST_COMPATIBILITY, COMPATIBILITY = 130, 150
COLLATION = "Latin1_General_100_BIN2"
# Bits of COLLATIONPROPERTY(…, 'ComparisonStyle'): case (1) or accents (2) do not count. Binary collations have 0.
BLIND = 3
DATABASE_SQL = (
    "SELECT name, collation_name, CAST(COLLATIONPROPERTY(collation_name, 'ComparisonStyle') AS int),"
    " is_read_committed_snapshot_on, compatibility_level FROM sys.databases WHERE name = DB_NAME()"
)
# A column keeps the collation that the database had when the column was added.
COLUMN_SQL = (
    "SELECT TOP 1 OBJECT_NAME(object_id) + '.' + name, collation_name FROM sys.columns"
    " WHERE OBJECTPROPERTY(object_id, 'IsUserTable') = 1"
    " AND CAST(COLLATIONPROPERTY(collation_name, 'ComparisonStyle') AS int) & 3 > 0"
)


class Facts(NamedTuple):
    version: int
    is_azure: bool
    name: str
    collation: str
    style: int
    has_row_versions: bool
    compatibility: int
    # The name and the collation of a column in which case or accents do not count.
    column: tuple[str, str] | None

    def __str__(self) -> str:
        rows = "on" if self.has_row_versions else "off"
        return f"collation {self.collation}, READ_COMMITTED_SNAPSHOT {rows}, compatibility level {self.compatibility}"


class Lack(NamedTuple):
    message: str
    advice: str


def facts(database: Any) -> Facts:
    with database.cursor() as cursor:
        cursor.execute(DATABASE_SQL)
        name, collation, style, has_row_versions, compatibility = cursor.fetchone()
        cursor.execute(COLUMN_SQL)
        column = cursor.fetchone()
    version, is_azure = database.sql_server_version, database.to_azure_sql_db
    return Facts(version, is_azure, name, collation, style, bool(has_row_versions), compatibility, column)


def lacks(found: Facts) -> Iterator[Lack]:
    """Yield what the database lacks. Each advice is a sentence."""
    alter = f"ALTER DATABASE [{found.name}]"
    if found.version < OLDEST and not found.is_azure:
        yield Lack(f"this is SQL Server {found.version}", f"Use SQL Server {OLDEST} or newer.")
    if found.style & BLIND:
        yield Lack(
            f"case or accents do not count in collation {found.collation}",
            f"Before the first migrate, run `{alter} COLLATE {COLLATION}`.",
        )
    elif found.column:
        name, collation = found.column
        yield Lack(
            f"case or accents do not count in column {name}, whose collation is {collation}",
            f"Use a new database that was made with COLLATE {COLLATION}.",
        )
    if not found.has_row_versions:
        yield Lack(
            "READ_COMMITTED_SNAPSHOT is off, so readers and writers block each other",
            f"Run `{alter} SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE`.",
        )
    if found.compatibility < LEAST_COMPATIBILITY:
        yield Lack(
            f"the compatibility level is {found.compatibility}",
            f"Run `{alter} SET COMPATIBILITY_LEVEL = {COMPATIBILITY}`.",
        )


def refuse_without(using: str, **_: Any) -> None:
    """Raise CommandError if the database lacks something. A receiver of Django's signal `pre_migrate`."""
    database = connections[using]
    if database.vendor == "microsoft" and (found := list(lacks(facts(database)))):
        problems = " ".join(f"{lack.message[0].upper()}{lack.message[1:]}. {lack.advice}" for lack in found)
        raise CommandError(f"ADE cannot use this database. {problems} See docs/sqlserver.md. Nothing was changed.")
