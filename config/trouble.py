"""Messages instead of tracebacks when ADE cannot start: what is wrong, and what to do."""

import sqlite3
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection
from django.db.utils import Error

from api.outages import is_full_disk

# By prefix of SQLite's error names. Any other error is a defect of ADE.
_SQLITE = {
    "SQLITE_CANTOPEN": "cannot be opened. Its directory must exist, and this user must be able to write to both.",
    "SQLITE_READONLY": "cannot be written. This user must be able to write to the file and its directory.",
    "SQLITE_PERM": "cannot be written. This user must be able to write to the file and its directory.",
    "SQLITE_IOERR": "cannot be read or written. Check its disk and file system.",
    "SQLITE_NOTADB": "is not an SQLite database. Name another file in DATABASE_URL, or move this one away.",
    "SQLITE_CORRUPT": "is damaged. Restore it from a backup.",
    "SQLITE_BUSY": "is locked by another program. End that program, or try again later.",
}
# Prefixes of SQL states: no connection, no permission to connect, no such database, no resources, shut down by the
# operator. An error without a state counts as no connection.
_AWAY = ("08", "28", "3D", "53", "57P")
_CONNECT = "Check host, port, name, user and password in DATABASE_URL, and whether the server runs there."
_RIGHTS = "The user must be allowed to create tables there: make it the owner of the database in DATABASE_URL."


def sentence(error: BaseException) -> str | None:
    """Return a message for the error, or None if only a traceback explains it."""
    cause: BaseException | None = error
    # Django wraps database errors in its own, once or twice.
    while isinstance(cause, Error):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    found = " ".join(str(cause).split())
    if is_full_disk(cause):
        room = f"Free disk space for the database and for {settings.VAR_DIR} (ADE_VAR_DIR), then start again."
        return f"The disk is full: {found}. {room}"
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause, found)
    if isinstance(cause, psycopg.errors.InsufficientPrivilege):
        return f"The database user lacks a permission: {found}. {_RIGHTS}"
    if isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "08").startswith(_AWAY):
        return f"Cannot connect to the database: {found}. {_CONNECT}"
    return _of_files(cause) if isinstance(cause, OSError) else None


def _of_sqlite(error: sqlite3.Error, found: str) -> str | None:
    name = getattr(error, "sqlite_errorname", "")
    said = next((said for begins, said in _SQLITE.items() if name.startswith(begins)), None)
    return said and f"The database {connection.settings_dict['NAME']} {said} (Error: {found}.)"


def _of_files(error: OSError) -> str | None:
    """Explain errors with files that ADE writes. A missing file of its code is a defect."""
    if not isinstance(error.filename, str) or not Path(error.filename).is_relative_to(settings.VAR_DIR):
        return None
    advice = "This user must be able to write to everything in ADE_VAR_DIR."
    return f"{error.filename} cannot be used: {error.strerror}. {advice}"
