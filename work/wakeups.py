"""Telling workers that there is something to do, before their next tick. Nothing depends on it."""

import time
from collections.abc import Callable
from threading import Event as Flag

from django.db import connection

from work import sql
from work.steady import Steady

# SQLite has no bell. It has a number that changes with every commit, which costs microseconds to look at.
SQLITE_LOOK_SECONDS = 0.05
# How long a listener waits in one go: what a stop may have to wait for it.
LISTEN_SECONDS = 0.5


def ring(topic: str) -> None:
    """In a transaction, the bell rings when it commits."""
    sql.ring(topic)


class Listener(Steady):
    """Calls `heard` with a topic, "" for anything."""

    def __init__(self, heard: Callable[[str], None], stopping: Flag) -> None:
        super().__init__("listener", stopping)
        self.heard = heard

    def go_on(self) -> None:
        if connection.vendor == "postgresql":
            _listen_postgresql(self.heard, self.stopping)
        elif connection.vendor == "sqlite":
            _watch_sqlite(self.heard, self.stopping)
        else:
            self.stopping.wait()


def _listen_postgresql(heard: Callable[[str], None], stopping: Flag) -> None:
    connection.ensure_connection()
    raw = connection.connection
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {sql.CHANNEL}")
    # Whatever was rung before we listened.
    heard("")
    while not stopping.is_set():
        with connection.wrap_database_errors:
            notes = list(raw.notifies(timeout=LISTEN_SECONDS, stop_after=1))
        for note in notes:
            heard(note.payload)


def _watch_sqlite(heard: Callable[[str], None], stopping: Flag) -> None:
    connection.ensure_connection()
    raw = connection.connection
    seen = None
    while not stopping.is_set():
        (version,) = raw.execute("PRAGMA data_version").fetchone()
        if version != seen:
            seen = version
            heard("")
        time.sleep(SQLITE_LOOK_SECONDS)
