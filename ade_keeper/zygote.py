"""The program of a process that is kept warm: it loads what is needed once, and forks a fresh process for each piece of
work. It never does any itself, and keeps what it forks as the worker's own keepers keep theirs: until it is gone with
all that it forked, within its times and limits.
"""

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ade_keeper import proc
from ade_keeper.keeper import Keeper

# Above all that a process may have; the kernel closes a range in one call.
HIGHEST_DESCRIPTOR = 1 << 20
Loaded = TypeVar("Loaded")


def serve(
    descriptor: int, load: Callable[[], Loaded], become: Callable[[Loaded], NoReturn], events_variable: str
) -> None:
    """Until nobody is left to order. In a fork, `become` finds the working directory and the environment of its work,
    and the descriptor for its events in the variable of that name.
    """
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    parent = os.getppid()
    started_with = dict(os.environ)
    loaded = load()
    if threading.active_count() > 1:
        # A fork has none of the threads, and whatever they held stays locked.
        sys.exit("this program starts threads when it is imported: it cannot be kept warm")
    gc.collect()
    gc.freeze()
    # A collection would copy the pages that all forks share.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # By default a process may read and change the memory of all others of its user: a fork that of those after it.
    proc.prctl(proc.PR_SET_DUMPABLE, 0)
    opened_by_imports = _open_descriptors() - {descriptor}

    def turn_into(order: dict[str, Any], _tell: int) -> NoReturn:
        proc.prctl(proc.PR_SET_DUMPABLE, 1)
        # What is this fork's own. What an import has set stays, as it does where the work follows the import.
        os.environ.update({name: value for name, value in order["env"].items() if started_with.get(name) != value})
        # As exec would have done: the control socket and all else of the keeper; `tell` says by that that we run.
        _close_all_but({0, 1, 2, int(os.environ[events_variable]), *opened_by_imports})
        become(loaded)

    Keeper(control, parent, turn_into).run()


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
