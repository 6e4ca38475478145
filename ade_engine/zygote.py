"""A process with everything imported that a configuration imports, which forks a fresh one for each run.

It never runs a step. It keeps each run as the worker's own keepers keep theirs: until it is gone with all that it
forked, within its times and limits.
"""

import gc
import os
import socket
import sys
import threading
from functools import partial
from typing import Any, NoReturn

from ade_engine import runner
from ade_engine.channel import VARIABLE
from ade_engine.steps import Step
from ade_keeper import proc
from ade_keeper.keeper import Keeper

# Above all that a process may have; the kernel closes a range in one call.
HIGHEST_DESCRIPTOR = 1 << 20


def serve(descriptor: int) -> None:
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    parent = os.getppid()
    started_with = dict(os.environ)
    steps = runner.load()
    if threading.active_count() > 1:
        # A fork has none of the threads, and whatever they held stays locked.
        sys.exit("this configuration starts threads when it is imported: it cannot be kept warm")
    gc.collect()
    gc.freeze()
    # A collection would copy the pages that all runs share.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # By default a process may read and change the memory of all others of its user: a run that of those after it.
    proc.prctl(proc.PR_SET_DUMPABLE, 0)
    opened_by_imports = _open_descriptors() - {descriptor}
    Keeper(control, parent, partial(_become_run, steps, opened_by_imports, started_with)).run()


def _become_run(
    steps: list[Step], keep: set[int], started_with: dict[str, str], order: dict[str, Any], tell: int
) -> NoReturn:
    proc.prctl(proc.PR_SET_DUMPABLE, 1)
    # What is this run's own. What an import has set stays, as it does where the step follows the import.
    os.environ.update({name: value for name, value in order["env"].items() if started_with.get(name) != value})
    # As exec would have done: the control socket and all else that is the keeper's; `tell` by that says that we run.
    _close_all_but({0, 1, 2, int(os.environ[VARIABLE]), *keep})
    runner.start_anew()
    runner.run_here(lambda: steps)


def _close_all_but(keep: set[int]) -> None:
    kept = sorted(keep)
    for below, above in zip(kept, [*kept[1:], HIGHEST_DESCRIPTOR], strict=True):
        os.closerange(below + 1, above)


def _open_descriptors() -> set[int]:
    listed = {int(name) for name in os.listdir("/proc/self/fd")}
    # The one that the list was read through is closed by now.
    return {each for each in listed if _is_open(each)}


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
