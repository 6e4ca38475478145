"""Threads of a worker that survive every error. A worker whose recovery thread has died is worse than no worker."""

from threading import Event as Flag
from threading import Thread

import structlog
from django.conf import settings
from django.db import Error, connection

from work import outages

# The pause after the first failure. It doubles with each further failure, up to one tick.
FIRST_PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


class SteadyThread(Thread):
    def __init__(self, name: str, stopping: Flag) -> None:
        # A daemon thread, so that it cannot keep the worker from exiting if it hangs.
        super().__init__(name=name, daemon=True)
        self.stopping = stopping

    def run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self.stopping.is_set():
            try:
                self.do_round()
                pause = FIRST_PAUSE_SECONDS
            # SystemExit too: the work may run code that was written as a program and calls sys.exit().
            except (Exception, SystemExit) as error:
                if outages.is_outage(error):
                    pass
                elif isinstance(error, Error):
                    log.warning("worker.database_refused", thread=self.name, error=str(error).strip())
                else:
                    log.exception("worker.thread_failed", thread=self.name)
                connection.close()
                self.stopping.wait(pause)
                pause = min(pause * 2, settings.ADE_TICK_SECONDS)
        connection.close()

    def do_round(self) -> None:
        """Do one round of work, including the wait for the next round."""
        raise NotImplementedError
