"""Turns errors that keep ADE from starting into messages that say what is wrong and what to do."""

import sqlite3
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.utils import Error
from django.utils.text import capfirst

from api.outages import is_full_disk
from work import schema
from work.sqlserver.errors import CannotConnect

# Prefix of SQLite's error name -> what is wrong with the database file. Any other error is a defect of ADE.
_SQLITE_PROBLEMS = {
    "SQLITE_CANTOPEN": "cannot be opened. Its directory must exist, and this user must be able to write to both.",
    "SQLITE_READONLY": "cannot be written. This user must be able to write to the file and its directory.",
    "SQLITE_PERM": "cannot be written. This user must be able to write to the file and its directory.",
    "SQLITE_IOERR": "cannot be read or written. Check its disk and file system.",
    "SQLITE_NOTADB": "is not an SQLite database. Name another file in DATABASE_URL, or move this one away.",
    "SQLITE_CORRUPT": "is damaged. Restore it from a backup.",
    "SQLITE_BUSY": "is locked by another program. End that program, or try again later.",
}
# Prefixes of SQL states: no connection, no permission to connect, no such database, no resources, shut down by an
# operator. An error without a state counts as "no connection".
_AWAY = ("08", "28", "3D", "53", "57P")
_CONNECT = "Check host, port, name, user and password in DATABASE_URL, and whether the server runs there."
_RIGHTS = "The user must be allowed to create tables there: make it the owner of the database in DATABASE_URL."


def sentence(error: BaseException) -> str | None:
    """Return a message for the error, or None if only a traceback explains it."""
    if isinstance(error, CannotConnect):
        return f"{capfirst(str(error))}. {_CONNECT}"
    cause: BaseException | None = error
    # Django wraps database errors once or twice in its own exceptions.
    while isinstance(cause, Error):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if isinstance(cause, InconsistentMigrationHistory):
        # Django's check runs before ADE's. Only a database of ADE 0.1 has such a history.
        return f"{capfirst(schema.REFUSAL)}. Nothing was changed."
    text = " ".join(str(cause).split())
    if is_full_disk(cause):
        advice = f"Free disk space for the database and for {settings.VAR_DIR} (ADE_VAR_DIR), then start again."
        return f"The disk is full: {text}. {advice}"
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        problem = next((problem for prefix, problem in _SQLITE_PROBLEMS.items() if name.startswith(prefix)), None)
        return problem and f"The database {connection.settings_dict['NAME']} {problem} (Error: {text}.)"
    if isinstance(cause, psycopg.errors.InsufficientPrivilege):
        return f"The database user lacks a permission: {text}. {_RIGHTS}"
    if isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "08").startswith(_AWAY):
        return f"Cannot connect to the database: {text}. {_CONNECT}"
    if not isinstance(cause, OSError) or not isinstance(cause.filename, str):
        return None
    # Explain only files that ADE writes. If a file of ADE's code is missing, that is a defect.
    if not Path(cause.filename).is_relative_to(settings.VAR_DIR):
        return None
    advice = "This user must be able to write to everything in ADE_VAR_DIR."
    return f"{cause.filename} cannot be used: {cause.strerror}. {advice}"
