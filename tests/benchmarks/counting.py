"""Count what the database is asked to do: the same numbers on every machine, whatever else it does."""

import contextlib
from collections import Counter

import psycopg
from django.db import connection

# What one call of Django's or of psycopg costs beyond its statements.
BEGIN_AND_COMMIT = 2


@contextlib.contextmanager
def counted():
    """Yield a Counter that has `statements`, `commits` and `round trips` when the block has ended.

    A statement outside a transaction commits by itself, so it is a commit too. On SQLite nothing travels; a round trip
    is a call of the library.
    """
    counter = Counter()
    connection.ensure_connection()
    with _on_postgres(counter) if connection.vendor == "postgresql" else _on_sqlite(counter):
        yield counter
    counter["round trips"] = counter["statements"] + BEGIN_AND_COMMIT * counter["transactions"]
    counter["commits"] = counter.pop("transactions", 0) + counter.pop("alone", 0)


@contextlib.contextmanager
def _on_postgres(counter):
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

    def counting(cursor, *arguments, **options):
        counter["statements"] += 1
        counter["alone"] += cursor.connection.autocommit
        return execute(cursor, *arguments, **options)

    def committing(raw):
        counter["transactions"] += 1
        return commit(raw)

    psycopg.Cursor.execute, psycopg.Connection.commit = counting, committing
    try:
        yield
    finally:
        psycopg.Cursor.execute, psycopg.Connection.commit = execute, commit


@contextlib.contextmanager
def _on_sqlite(counter):
    is_open = False

    def trace(sql):
        nonlocal is_open
        word = sql.lstrip().split(None, 1)[0].upper() if sql.strip() else ""
        if word in ("BEGIN", "COMMIT", "ROLLBACK"):
            is_open = word == "BEGIN"
            counter["transactions"] += word == "COMMIT"
        # Statements of triggers come as comments.
        elif not word.startswith("--"):
            counter["statements"] += 1
            counter["alone"] += not is_open

    connection.connection.set_trace_callback(trace)
    try:
        yield
    finally:
        connection.connection.set_trace_callback(None)
