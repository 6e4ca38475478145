"""Two threads of every worker: one runs recovery, the other runs the periodic tasks of each kind of work.

Recovery has a thread of its own so that it never waits for a periodic task. A task that fails or meets a lock does not
stop the other tasks.
"""

import time
from collections.abc import Callable
from threading import Event as Flag

import structlog
from django.conf import settings
from django.db import connection

from work import outages, recovery
from work.sql.contention import be_impatient
from work.threads import SteadyThread
from work.work_types import WorkType

log = structlog.get_logger(__name__)


class RecoveryThread(SteadyThread):
    """Runs recovery once per tick."""

    def __init__(self, kinds: list[WorkType], owner: str, stopping: Flag, ring: Callable[[WorkType], None]) -> None:
        super().__init__("recovery", stopping)
        self.kinds, self.owner, self.ring = kinds, owner, ring

    def do_round(self) -> None:
        self.stopping.wait(settings.ADE_TICK_SECONDS)
        if recovery.rescue_expired(self.kinds, self.owner):
            for kind in self.kinds:
                self.ring(kind)


class HousekeepingThread(SteadyThread):
    """Runs each periodic task at its ticks. When woken between ticks, it runs all tasks that have `when_rung`."""

    def __init__(self, kinds: list[WorkType], owner: str, stopping: Flag, ring: Callable[[WorkType], None]) -> None:
        super().__init__("housekeeping", stopping)
        self.kinds, self.owner, self.ring = kinds, owner, ring
        self.woken = Flag()
        self.ticks = 0
        self.next_tick = time.monotonic() + settings.ADE_TICK_SECONDS

    def do_round(self) -> None:
        self.woken.wait(max(0.0, self.next_tick - time.monotonic()))
        # Clear the flag before running the tasks, so that a wake-up during the tasks is not lost.
        self.woken.clear()
        early = time.monotonic() < self.next_tick
        if not early:
            self.next_tick = time.monotonic() + settings.ADE_TICK_SECONDS
            self.ticks += 1
        self.do_tasks(is_woken=early)

    def do_tasks(self, *, is_woken: bool) -> None:
        """Do the tasks that are due at this tick; after a wake-up, those that a wake-up concerns."""
        be_impatient()
        for kind in self.kinds:
            has_done_some = False
            for task in kind.periodic_tasks:
                if not (task.when_rung if is_woken else self.ticks % task.every == 0):
                    continue
                try:
                    has_done_some |= bool(task.do(self.owner))
                except Exception as error:
                    if not outages.is_outage(error):
                        log.exception("housekeeping.task_failed", task=task.do.__name__)
                    # The connection may be in any state, so the next task gets a new one.
                    connection.close()
                    be_impatient()
            if has_done_some:
                self.ring(kind)
                # There may be more to do, because a task handles a limited number of rows at a time.
                self.woken.set()
