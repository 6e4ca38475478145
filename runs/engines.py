"""Starts the engines of this worker. Each build in use has a warm engine, which forks a process for each run; if it
cannot be used, the engine is started cold.
"""

import atexit
import math
import os
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

from django.conf import settings

from builds import environments
from runs import scratch
from runs.engine_session import EngineFailed, Failure
from work.claims import Claim, Interrupted
from work.processes import hidden_paths, supervise
from work.processes.fork_server import ForkServer
from work.processes.supervise import Child, Limits, OnEvent, OnOutput
from work.processes.warm import Pool, Started, Warm

# Isolated mode, unbuffered output, no bytecode files, UTF-8, and a traceback if C code crashes.
FLAGS = ("-I", "-u", "-B", "-X", "utf8", "-X", "faulthandler", "-m", "ade_engine")
# A worker runs several engines at once, so libraries that start a thread per core would compete for the cores.
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
OUT_OF_TIME = "out_of_time"


def take(claim: Claim, name: str, workspace_id: int, until: float) -> Warm | None:
    """Take a warm engine, or return None to start a cold one.

    Raises Interrupted if the claim must end, and EngineFailed if the run's time is over.
    """

    def stop() -> str | None:
        return claim.why_stop() or (OUT_OF_TIME if monotonic() >= until else None)

    try:
        return POOL.take(name, stop, owner=workspace_id)
    except Interrupted as interrupted:
        if str(interrupted) != OUT_OF_TIME:
            raise
        limit = settings.ADE_RUN_TIMEOUT_SECONDS
        message = f"Timed out after {limit} s while importing the configuration."
        raise EngineFailed(Failure.TIMED_OUT, message) from interrupted


def _start(name: str, folder: Path, held: ExitStack) -> Started:
    environment = held.enter_context(environments.in_use(name))
    fork_server = ForkServer(
        [environments.python_of(environment), *FLAGS, "serve"],
        cwd=folder,
        env=VARIABLES,
        limits=limits(None),
        readable=[environment],
        hidden=hidden_paths.places(),
    )
    inode = _inode(name)

    def is_current() -> bool:
        # The environment may have been replaced, removed or changed since, and a forked process may import more of its
        # files.
        return inode is not None and _inode(name) == inode and environments.is_usable(name)

    return Started(fork_server, is_current, fork_server.is_walled_off)


def _inode(name: str) -> int | None:
    try:
        return os.stat(environments.path_of(name)).st_ino
    except FileNotFoundError:
        return None


def limits(wall_seconds: float | None) -> Limits:
    # Enough for two threads that are busy during the whole run.
    cpu_seconds = 2 * settings.ADE_RUN_TIMEOUT_SECONDS
    memory = settings.ADE_ENGINE_MEMORY_BYTES
    return Limits(
        wall_seconds=wall_seconds,
        cpu_seconds=cpu_seconds,
        address_space_bytes=memory,
        memory_bytes=memory,
        tasks=settings.ADE_RUN_PROCESSES,
        disk_bytes=settings.ADE_RUN_DISK_BYTES,
    )


def start_warm(
    warm: Warm, directory: Path, within: Limits, on_output: OnOutput, on_event: OnEvent, trust_until: float
) -> Child:
    return warm.fork_server.spawn(
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
        hidden=hidden_paths.places(),
        trust_until=trust_until,
    )


# Keep at most two idle engines per worker thread, so that a worker with many builds keeps the most recently used ones.
POOL = Pool(scratch.root, _start, lambda: 2 * settings.ADE_MAX_CONCURRENCY)
atexit.register(POOL.close)
