"""The engines of this worker: for each build in use a process that has everything imported and forks one for each run,
and where that cannot be, a cold start.
"""

import atexit
import math
import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psutil
import structlog
from django.conf import settings

from builds import environments
from runs import workplaces
from runs.session import EngineFailed, Failure
from runs.workplaces import Desk
from work import private, supervise
from work.claims import Claim, Interrupted
from work.supervise import CannotStart, Child, Limits, OnEvent, OnOutput
from work.zygote import Zygote

# Isolated, unbuffered, and with a traceback for a crash in C.
FLAGS = ("-I", "-u", "-B", "-X", "utf8", "-X", "faulthandler", "-m", "ade_engine")
# Two slots of a worker are busy with as many runs: libraries that start a thread per core would fight over them.
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Less than this share of the machine's memory left: what is kept only to be quick is given up.
LEAST_MEMORY = 0.08
OUT_OF_TIME = "out_of_time"
# How long a build that could not be kept warm is not tried again by this process: it may have been the machine.
HOPELESS_SECONDS = 600.0
_hopeless: dict[str, float] = {}

log = structlog.get_logger(__name__)


@dataclass
class Warm:
    environment: str
    zygote: Zygote
    folder: Path
    # Which environment it has: another one may be in that place by now, and this one be gone.
    inode: int
    # Keeps the environment from being pruned.
    held: ExitStack

    def close(self) -> None:
        self.zygote.close()
        self.held.close()


class Pool:
    """Used by all slots of a worker; an engine that is taken is its taker's alone."""

    def __init__(self) -> None:
        self._desk: Desk | None = None
        self._idle: list[Warm] = []
        self._lock = threading.Lock()

    def desk(self) -> Desk:
        with self._lock:
            if self._desk is None:
                self._desk = Desk()
            return self._desk

    def take(self, claim: Claim, name: str, until: float) -> Warm | None:
        """None: start a cold one. Raises Interrupted when the claim has to end meanwhile, EngineFailed when time is
        over.
        """
        if not settings.ADE_WARM_ENGINES or monotonic() < _hopeless.get(name, 0.0):
            return None
        with self._lock:
            found = next((each for each in self._idle if each.environment == name), None)
            if found is not None:
                self._idle.remove(found)
        if found is not None and found.zygote.is_free() and found.inode == _inode(name):
            return found
        if found is not None:
            found.close()
        if memory_is_short():
            self.retire(everything=True)
            return None
        return self._start(claim, name, until)

    def give_back(self, warm: Warm) -> None:
        spent = warm.zygote.forked >= settings.ADE_WARM_RUNS
        if spent or not warm.zygote.is_free() or not workplaces.is_intact(warm.folder):
            warm.close()
            return
        with self._lock:
            self._idle.append(warm)
        self._keep_few()

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

    def _keep_few(self) -> None:
        """As many as there are slots, twice: a worker that goes through many builds keeps the latest."""
        with self._lock:
            most = 2 * settings.ADE_MAX_CONCURRENCY
            surplus, self._idle = self._idle[:-most], self._idle[-most:]
        for each in surplus:
            each.close()

    def _start(self, claim: Claim, name: str, until: float) -> Warm | None:
        with ExitStack() as opened:
            try:
                warm = self._spawn(name)
            except CannotStart as error:
                # That is not the configuration's fault: the next run tries again.
                log.warning("engines.not_started", environment=name[:12], error=str(error))
                return None
            opened.callback(warm.close)
            try:
                reason = warm.zygote.wait(lambda: claim.why_stop() or (OUT_OF_TIME if monotonic() >= until else None))
            except CannotStart as error:
                _give_up(name, error)
                return None
            if reason == OUT_OF_TIME:
                limit = settings.ADE_RUN_TIMEOUT_SECONDS
                raise EngineFailed(Failure.TIMED_OUT, f"timed out after {limit} s while the configuration was imported")
            if reason:
                raise Interrupted(reason)
            opened.pop_all()
            return warm

    def _spawn(self, name: str) -> Warm:
        with ExitStack() as held:
            environment = held.enter_context(environments.in_use(name))
            folder = self.desk().place()
            held.callback(workplaces.remove, folder)
            zygote = Zygote(
                [environments.python_of(environment), *FLAGS, "serve"],
                cwd=folder,
                env=VARIABLES,
                limits=limits(None),
                readable=[environment],
                hidden=private.places(),
            )
            return Warm(name, zygote, folder, _inode(name), held.pop_all())


def _inode(name: str) -> int:
    return os.stat(environments.path_of(name)).st_ino


def _give_up(name: str, error: CannotStart) -> None:
    log.warning("engines.not_warm", environment=name[:12], error=str(error))
    _hopeless[name] = monotonic() + HOPELESS_SECONDS


def limits(wall_seconds: float | None) -> Limits:
    # Two busy threads all the time.
    cpu_seconds = 2 * settings.ADE_RUN_TIMEOUT_SECONDS
    memory = settings.ADE_ENGINE_MEMORY_BYTES
    return Limits(wall_seconds=wall_seconds, cpu_seconds=cpu_seconds, address_space_bytes=memory)


def start_warm(
    warm: Warm, directory: Path, within: Limits, on_output: OnOutput, on_event: OnEvent, trust_until: float
) -> Child:
    return warm.zygote.spawn(
        cwd=directory,
        env=VARIABLES,
        limits=within,
        on_output=on_output,
        on_event=on_event,
        trust_until=trust_until,
    )


def start_cold(
    environment: Path,
    directory: Path,
    within: Limits,
    on_output: OnOutput,
    on_event: OnEvent,
    trust_until: float = math.inf,
) -> Child:
    return supervise.spawn(
        [environments.python_of(environment), *FLAGS, "run"],
        cwd=directory,
        env=VARIABLES,
        limits=within,
        on_output=on_output,
        on_event=on_event,
        readable=[environment],
        hidden=private.places(),
        trust_until=trust_until,
    )


def memory_is_short() -> bool:
    memory = psutil.virtual_memory()
    return bool(memory.available < LEAST_MEMORY * memory.total)


POOL = Pool()
atexit.register(POOL.close)
