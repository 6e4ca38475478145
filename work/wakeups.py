"""Wakes workers before their next tick when there is work. A lost wake-up only costs time: the tick finds the work."""

import time
from collections.abc import Callable
from threading import Event as Flag

from django.db import connection

from work.sql import bell
from work.threads import SteadyThread

# SQLite has no notifications, but it has a number that changes with every commit and takes microseconds to read.
SQLITE_LOOK_SECONDS = 0.05
# How long a listener waits at a time. Stopping the worker may take this long.
LISTEN_SECONDS = 0.5


def ring(topic: str) -> None:
    """Notify workers. Inside a transaction, they are notified when it commits."""
    bell.ring(topic)


class Listener(SteadyThread):
    """Calls `on_wakeup` with each topic, or with "" if the topic is unknown."""

    def __init__(self, on_wakeup: Callable[[str], None], stopping: Flag) -> None:
        super().__init__("listener", stopping)
        self.on_wakeup = on_wakeup

    def do_round(self) -> None:
        if connection.vendor == "postgresql":
            self._listen_on_postgresql()
        elif connection.vendor == "sqlite":
            self._watch_sqlite()
        else:
            self.stopping.wait()

    def _listen_on_postgresql(self) -> None:
        connection.ensure_connection()
        raw = connection.connection
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {bell.CHANNEL}")
        # Notifications from before LISTEN are lost, so look at everything once.
        self.on_wakeup("")
        while not self.stopping.is_set():
            with connection.wrap_database_errors:
                notifications = list(raw.notifies(timeout=LISTEN_SECONDS, stop_after=1))
            for notification in notifications:
                self.on_wakeup(notification.payload)

    def _watch_sqlite(self) -> None:
        connection.ensure_connection()
        raw = connection.connection
        last_version = None
        while not self.stopping.is_set():
            (version,) = raw.execute("PRAGMA data_version").fetchone()
            if version != last_version:
                last_version = version
                self.on_wakeup("")
            time.sleep(SQLITE_LOOK_SECONDS)
