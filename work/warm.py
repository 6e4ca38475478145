"""Children that are kept because starting them takes long: each forks a fresh process for each piece of work."""

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

from work import workplaces
from work.claims import Interrupted
from work.supervise import CannotStart
from work.workplaces import Desk
from work.zygote import Zygote

# Less than this share of the machine's memory left: what is kept only to be quick is given up.
LEAST_MEMORY = 0.08
# How long one that could not be kept warm is not tried again by this process: it may have been the machine.
HOPELESS_SECONDS = 600.0

log = structlog.get_logger(__name__)


class Started(NamedTuple):
    zygote: Zygote
    # Whether what it has loaded is still what others of its name would load.
    is_current: Callable[[], bool] = lambda: True


# Starts the one of that name in a folder of its own, and enters what has to be held as long as it lives.
Start = Callable[[str, Path, ExitStack], Started]


@dataclass
class Warm:
    name: str
    zygote: Zygote
    folder: Path
    is_current: Callable[[], bool]
    held: ExitStack

    def close(self) -> None:
        self.zygote.close()
        self.held.close()


class Pool:
    """Used by all slots of a worker; one that is taken is its taker's alone."""

    def __init__(self, root: Callable[[], Path], start: Start, most_idle: Callable[[], int]) -> None:
        self._root, self._start, self._most_idle = root, start, most_idle
        self._desk: Desk | None = None
        self._idle: list[Warm] = []
        self._lock = threading.Lock()
        self._hopeless: dict[str, float] = {}

    def desk(self) -> Desk:
        with self._lock:
            if self._desk is None:
                self._desk = Desk(self._root())
            return self._desk

    def take(self, name: str, stop: Callable[[], str | None]) -> Warm | None:
        """None: do without. Raises Interrupted when `stop` has given a reason while one was being started."""
        if not settings.ADE_WARM_ENGINES or monotonic() < self._hopeless.get(name, 0.0):
            return None
        if found := self._idle_one(name):
            if found.zygote.is_free() and found.is_current():
                return found
            found.close()
        if memory_is_short():
            self.retire(everything=True)
            return None
        return self._started(name, stop)

    def give_back(self, warm: Warm) -> None:
        spent = warm.zygote.forked >= settings.ADE_WARM_RUNS
        if spent or not warm.zygote.is_free() or not workplaces.is_intact(warm.folder):
            warm.close()
            return
        with self._lock:
            self._idle.append(warm)
            # Whoever goes through many names keeps the latest.
            most = self._most_idle()
            surplus, self._idle = self._idle[:-most], self._idle[-most:]
        for each in surplus:
            each.close()

    def retire(self, *, everything: bool = False) -> int:
        """End those that nobody has needed for a while; answers how many."""
        oldest = monotonic() - settings.ADE_WARM_IDLE_SECONDS
        with self._lock:
            gone = [each for each in self._idle if everything or each.zygote.used_at < oldest]
            self._idle = [each for each in self._idle if each not in gone]
        for each in gone:
            each.close()
        return len(gone)

    def close(self) -> None:
        self.retire(everything=True)
        with self._lock:
            if self._desk is not None:
                self._desk.close()
                self._desk = None

    def _idle_one(self, name: str) -> Warm | None:
        """The one that was used last: what is seldom needed gets old, and is ended."""
        with self._lock:
            found = next((each for each in reversed(self._idle) if each.name == name), None)
            if found is not None:
                self._idle.remove(found)
            return found

    def _started(self, name: str, stop: Callable[[], str | None]) -> Warm | None:
        with ExitStack() as opened:
            try:
                warm = self._spawned(name)
            except CannotStart as error:
                # That may be the machine's fault: the next one tries again.
                log.warning("warm.not_started", name=name[:12], error=str(error))
                return None
            opened.callback(warm.close)
            try:
                reason = warm.zygote.wait(stop)
            except CannotStart as error:
                log.warning("warm.not_warm", name=name[:12], error=str(error))
                self._hopeless[name] = monotonic() + HOPELESS_SECONDS
                return None
            if reason:
                raise Interrupted(reason)
            opened.pop_all()
            return warm

    def _spawned(self, name: str) -> Warm:
        with ExitStack() as held:
            folder = self.desk().place()
            held.callback(workplaces.remove, folder)
            started = self._start(name, folder, held)
            return Warm(name, started.zygote, folder, started.is_current, held.pop_all())


def memory_is_short() -> bool:
    memory = psutil.virtual_memory()
    return bool(memory.available < LEAST_MEMORY * memory.total)
