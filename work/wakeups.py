"""Wakes workers before their next tick when there is work. Only speed depends on it."""

import time
from collections.abc import Callable
from threading import Event as Flag

from django.db import connection

from work.sql import returning
from work.threads import SteadyThread

# SQLite has no notifications, but a number that changes with every commit and costs microseconds to read.
SQLITE_LOOK_SECONDS = 0.05
# How long a listener waits at a time, and so how long a stop may have to wait for it.
LISTEN_SECONDS = 0.5


def ring(topic: str) -> None:
    """Notify workers. Inside a transaction this takes effect at its commit."""
    returning.ring(topic)


class Listener(SteadyThread):
    """Calls `heard` with each topic, or with "" if the topic is unknown."""

    def __init__(self, heard: Callable[[str], None], stopping: Flag) -> None:
        super().__init__("listener", stopping)
        self.heard = heard

    def do_round(self) -> None:
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
        cursor.execute(f"LISTEN {returning.CHANNEL}")
    # Notifications from before LISTEN are lost, so look at everything once.
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
