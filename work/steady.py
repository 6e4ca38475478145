"""Threads of a worker that go on whatever happens: a worker whose recovery has died of a bug is worse than none."""

from threading import Event as Flag
from threading import Thread

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

# After a first failure; then longer, up to a tick.
FIRST_PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


class Steady(Thread):
    def __init__(self, name: str, stopping: Flag) -> None:
        # A daemon: a thread that hangs must not keep a worker from ending.
        super().__init__(name=name, daemon=True)
        self.stopping = stopping

    def run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self.stopping.is_set():
            try:
                self.go_on()
                pause = FIRST_PAUSE_SECONDS
            # SystemExit too: whatever called sys.exit() in a thread meant a program of its own.
            except (Exception, SystemExit) as error:
                if isinstance(error, DatabaseError):
                    log.warning("worker.database_away", thread=self.name, error=str(error).strip())
                else:
                    log.exception("worker.thread_failed", thread=self.name)
                connection.close()
                self.stopping.wait(pause)
                pause = min(pause * 2, settings.ADE_TICK_SECONDS)
        connection.close()

    def go_on(self) -> None:
        """One round, with the wait for the next."""
        raise NotImplementedError
