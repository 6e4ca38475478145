"""What every worker does beside its work, in two threads: recovery, and the small duties of each kind.

They are two so that recovery never waits for a chore; and no chore waits for another one that fails or meets a lock.
"""

import time
from collections.abc import Callable
from threading import Event as Flag

import structlog
from django.conf import settings
from django.db import connection

from work import recovery
from work.contention import be_impatient
from work.kinds import Chore, Kind
from work.steady import Steady

log = structlog.get_logger(__name__)


class Rescuer(Steady):
    """Recovery, once a tick."""

    def __init__(self, kinds: list[Kind], owner: str, stopping: Flag, ring: Callable[[Kind], None]) -> None:
        super().__init__("rescuer", stopping)
        self.kinds, self.owner, self.ring = kinds, owner, ring

    def go_on(self) -> None:
        self.stopping.wait(settings.ADE_TICK_SECONDS)
        if recovery.rescue_expired(self.kinds, self.owner):
            for kind in self.kinds:
                self.ring(kind)


class Caretaker(Steady):
    """The chores: each at its ticks, all of them when woken."""

    def __init__(self, kinds: list[Kind], owner: str, stopping: Flag, ring: Callable[[Kind], None]) -> None:
        super().__init__("caretaker", stopping)
        self.kinds, self.owner, self.ring = kinds, owner, ring
        self.woken = Flag()
        self.ticks = 0
        self.next_tick = time.monotonic() + settings.ADE_TICK_SECONDS

    def go_on(self) -> None:
        self.woken.wait(max(0.0, self.next_tick - time.monotonic()))
        # Before the look, so that a wake which comes while we look is not lost.
        self.woken.clear()
        early = time.monotonic() < self.next_tick
        if not early:
            self.next_tick = time.monotonic() + settings.ADE_TICK_SECONDS
            self.ticks += 1
        self.do_chores(all_of_them=early)

    def do_chores(self, *, all_of_them: bool) -> None:
        be_impatient()
        for kind in self.kinds:
            due = [each for each in kind.chores if (each.when_rung if all_of_them else self.ticks % each.every == 0)]
            done = [self._do(chore) for chore in due]
            if any(done):
                self.ring(kind)
                # There may be more: a chore does so much at a time.
                self.woken.set()

    def _do(self, chore: Chore) -> object:
        try:
            return chore.do(self.owner)
        except Exception:
            log.exception("caretaker.chore_failed", chore=chore.do.__name__)
            # Whatever state its connection is in, the next chore gets a new one.
            connection.close()
            be_impatient()
            return None
