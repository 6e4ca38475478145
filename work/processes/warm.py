"""Warm processes: children that are kept running because starting them is slow. Each one forks a new process for every
piece of work.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import psutil
import structlog
from django.conf import settings

from work.claims import Interrupted
from work.processes import scratch
from work.processes.fork_server import ForkServer
from work.processes.scratch import ScratchDirectory
from work.processes.supervise import CannotStart

# Stop warm processes when less than this share of the machine's memory is free.
LEAST_MEMORY = 0.08
# How long to wait before warming a process again that has failed. It is worth a retry, because the failure may have
# been the machine's fault.
HOPELESS_SECONDS = 600.0

log = structlog.get_logger(__name__)


class Started(NamedTuple):
    fork_server: ForkServer
    # Returns whether a new process of this name would still load the same program.
    is_current: Callable[[], bool] = lambda: True
    # Whether the isolation ensures that one piece of work leaves nothing behind for the next.
    serves_many: bool = True


# Given a name, a folder and a stack, starts the process of this name in the folder. Enters on the stack whatever must
# be held while the process lives.
Start = Callable[[str, Path, ExitStack], Started]


@dataclass
class Warm:
    name: str
    # Only work of this owner may use the process.
    owner: int | None
    folder: Path
    started: Started
    held: ExitStack

    @property
    def fork_server(self) -> ForkServer:
        return self.started.fork_server

    def close(self) -> None:
        self.fork_server.close()
        self.held.close()


class Pool:
    """The warm processes of a worker, shared by its threads. A process that a thread has taken belongs to it alone."""

    def __init__(self, root: Callable[[], Path], start: Start, most_idle: Callable[[], int]) -> None:
        self._root, self._start, self._most_idle = root, start, most_idle
        self._desk: ScratchDirectory | None = None
        self._idle: list[Warm] = []
        self._lock = threading.Lock()
        self._hopeless: dict[str, float] = {}

    def desk(self) -> ScratchDirectory:
        with self._lock:
            if self._desk is None:
                self._desk = ScratchDirectory(self._root())
            return self._desk

    def take(self, name: str, stop: Callable[[], str | None], *, owner: int | None = None) -> Warm | None:
        """Take a process that has served only this owner, or start one. Return None if the work must do without.

        Raise Interrupted if `stop` returns a reason while a process is being started.
        """
        if not settings.ADE_WARM_ENGINES or monotonic() < self._hopeless.get(name, 0.0):
            return None
        with self._lock:
            # Take the most recently used process, so that surplus processes stay idle long enough to be ended.
            idle = next((each for each in reversed(self._idle) if (each.name, each.owner) == (name, owner)), None)
            if idle is not None:
                self._idle.remove(idle)
        if idle is not None:
            if idle.fork_server.is_free() and idle.started.is_current():
                return idle
            idle.close()
        if memory_is_short():
            self.retire(everything=True)
            return None
        with ExitStack() as opened:
            try:
                warm = self._spawn(name, owner)
            except CannotStart as error:
                # The failure may be the machine's fault, so the next call tries again.
                log.warning("warm.not_started", name=name[:12], error=str(error))
                return None
            opened.callback(warm.close)
            try:
                reason = warm.fork_server.wait(stop)
            except CannotStart as error:
                log.warning("warm.not_warm", name=name[:12], error=str(error))
                self._hopeless[name] = monotonic() + HOPELESS_SECONDS
                return None
            if reason:
                raise Interrupted(reason)
            opened.pop_all()
            return warm

    def give_back(self, warm: Warm) -> None:
        spent = not warm.started.serves_many or warm.fork_server.forked >= settings.ADE_WARM_RUNS
        if spent or not _is_idle(warm) or not scratch.is_intact(warm.folder):
            warm.close()
            return
        with self._lock:
            self._idle.append(warm)
            # Keep only the most recently used processes.
            most = self._most_idle()
            surplus, self._idle = self._idle[:-most], self._idle[-most:]
        for each in surplus:
            each.close()

    def look(self) -> int:
        """End idle processes that are active although they have no work. Return how many."""
        ending = []
        for each in list(self._idle):
            # Hold the lock during the check, so that a thread that wants this process waits a millisecond for it
            # instead of starting another one.
            with self._lock:
                if each in self._idle and not _is_idle(each):
                    self._idle.remove(each)
                    ending.append(each)
        for each in ending:
            log.warning("warm.not_idle", name=each.name[:12], owner=each.owner)
            each.close()
        return len(ending)

    def retire(self, *, everything: bool = False) -> int:
        """End the idle processes that have been idle for too long, or all idle processes. Return how many."""
        oldest = monotonic() - settings.ADE_WARM_IDLE_SECONDS
        with self._lock:
            ending = [each for each in self._idle if everything or each.fork_server.used_at < oldest]
            self._idle = [each for each in self._idle if each not in ending]
        for each in ending:
            each.close()
        return len(ending)

    def close(self) -> None:
        self.retire(everything=True)
        with self._lock:
            if self._desk is not None:
                self._desk.close()
                self._desk = None

    def _spawn(self, name: str, owner: int | None) -> Warm:
        with ExitStack() as held:
            folder = self.desk().place()
            held.callback(scratch.remove, folder)
            started = self._start(name, folder, held)
            return Warm(name, owner, folder, started, held.pop_all())


def _is_idle(warm: Warm) -> bool:
    return warm.fork_server.is_free() and warm.fork_server.is_alone()


def memory_is_short() -> bool:
    memory = psutil.virtual_memory()
    return bool(memory.available < LEAST_MEMORY * memory.total)
