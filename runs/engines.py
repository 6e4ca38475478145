"""The engines of this worker: for each build in use a process that has everything imported and forks one for each run,
and where that cannot be, a cold start.
"""

import atexit
import math
import os
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

from django.conf import settings

from builds import environments
from runs import workplaces
from runs.session import EngineFailed, Failure
from work import private, supervise
from work.claims import Claim, Interrupted
from work.supervise import Child, Limits, OnEvent, OnOutput
from work.warm import Pool, Started, Warm
from work.zygote import Zygote

# Isolated, unbuffered, and with a traceback for a crash in C.
FLAGS = ("-I", "-u", "-B", "-X", "utf8", "-X", "faulthandler", "-m", "ade_engine")
# Two slots of a worker are busy with as many runs: libraries that start a thread per core would fight over them.
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
OUT_OF_TIME = "out_of_time"


def take(claim: Claim, name: str, until: float) -> Warm | None:
    """None: start a cold one. Raises Interrupted when the claim has to end, EngineFailed when time is over."""
    try:
        return POOL.take(name, lambda: claim.why_stop() or (OUT_OF_TIME if monotonic() >= until else None))
    except Interrupted as interrupted:
        if str(interrupted) != OUT_OF_TIME:
            raise
        limit = settings.ADE_RUN_TIMEOUT_SECONDS
        message = f"timed out after {limit} s while the configuration was imported"
        raise EngineFailed(Failure.TIMED_OUT, message) from interrupted


def _start(name: str, folder: Path, held: ExitStack) -> Started:
    environment = held.enter_context(environments.in_use(name))
    zygote = Zygote(
        [environments.python_of(environment), *FLAGS, "serve"],
        cwd=folder,
        env=VARIABLES,
        limits=limits(None),
        readable=[environment],
        hidden=private.places(),
    )
    inode = _inode(name)
    # Another environment may be in that place by now, and this one be gone.
    return Started(zygote, lambda: inode is not None and _inode(name) == inode)


def _inode(name: str) -> int | None:
    try:
        return os.stat(environments.path_of(name)).st_ino
    except FileNotFoundError:
        return None


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


def _most_idle() -> int:
    # As many as there are slots, twice: a worker that goes through many builds keeps the latest.
    return 2 * settings.ADE_MAX_CONCURRENCY


POOL = Pool(workplaces.root, _start, _most_idle)
atexit.register(POOL.close)
