"""A warm process: it loads a program once and forks a fresh process for each piece of work.

The warm process itself does no work. Like a worker's own guards, it keeps each fork within its time and other limits,
until the fork and all its descendants are gone.
"""

import contextlib
import fcntl
import gc
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ade_keeper import proc
from ade_keeper.guard import ProcessGuard

# Files in /proc/self that this process's owner may change without a capability, and that its forks inherit or read.
SETTINGS = ("oom_score_adj", "coredump_filter", "autogroup")
# No process has a descriptor above this one. The kernel closes a whole range of descriptors in one call.
HIGHEST_DESCRIPTOR = 1 << 20
Loaded = TypeVar("Loaded")


def serve(
    descriptor: int, load: Callable[[], Loaded], become: Callable[[Loaded], NoReturn], events_variable: str
) -> None:
    """Take orders until the worker is gone.

    In each fork, `become` is called in the working directory and the environment of its work. The environment variable
    named by `events_variable` holds the descriptor for events. Exit if the program has started threads, or if it shares
    memory or files with its forks.
    """
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    parent = os.getppid()
    started_with = dict(os.environ)
    loaded = load()
    if threading.active_count() > 1:
        # Threads do not survive a fork, but in the fork the locks that they held stay locked.
        sys.exit("This program starts threads when it is imported, so it cannot be kept warm.")
    gc.collect()
    gc.freeze()
    # A garbage collection would write to the memory pages that all forks share, and each page would then be copied.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # By default, a process may read and change the memory of all processes of the same user. A fork could thus change
    # this process, and with it all later forks.
    proc.prctl(proc.PR_SET_DUMPABLE, 0)
    opened_by_imports = _open_descriptors() - {descriptor, 0, 1, 2}
    files = _files_to_reopen(opened_by_imports)
    if shared := _shared_between_forks(opened_by_imports - files.keys()):
        # One piece of work could leave data there for the next one.
        sys.exit(f"This program shares {', '.join(shared)} between processes, so it cannot be kept warm.")

    def turn_into(order: dict[str, Any], _writing: int) -> NoReturn:
        proc.prctl(proc.PR_SET_DUMPABLE, 1)
        # Set only variables that differ from the environment at the start of this process. A variable that an import
        # has set then stays, as in a cold start.
        os.environ.update({name: value for name, value in order["env"].items() if started_with.get(name) != value})
        # Do what exec would have done: close the control socket and all other descriptors of the guard. When the pipe
        # to the guard closes, the guard knows that the program runs.
        keep = sorted({0, 1, 2, int(os.environ[events_variable]), *opened_by_imports})
        for below, above in zip(keep, [*keep[1:], HIGHEST_DESCRIPTOR], strict=True):
            os.closerange(below + 1, above)
        for number, (path, flags, position) in files.items():
            inheritable = os.get_inheritable(number)
            reopened = os.open(path, flags | os.O_CLOEXEC)
            os.dup2(reopened, number, inheritable)
            os.close(reopened)
            os.lseek(number, position, os.SEEK_SET)
        become(loaded)

    _ForkGuard(control, parent, turn_into).run()


class _ForkGuard(ProcessGuard):
    """Before each fork, restores settings of this process that earlier forks could change if both run as root."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.settings = {name: _setting(name) for name in SETTINGS}

    def start(self, order: dict[str, Any], descriptors: list[int]) -> bool:
        for name, value in self.settings.items():
            if _setting(name) != value:
                with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as file:
                    file.write(value)
        return super().start(order, descriptors)


def _setting(name: str) -> str:
    """Return the setting in the form in which it must be written back."""
    try:
        with open(f"/proc/self/{name}") as file:
            value = file.read().split()[-1]
    except (OSError, IndexError):
        return ""
    return f"0x{value}" if name == "coredump_filter" else value


def _shared_between_forks(descriptors: set[int]) -> list[str]:
    """Return everything through which forks could pass data to each other.

    This is shared memory that they may write to, and descriptors of pipes, sockets and writable files. Devices are left
    out, because they store nothing.
    """
    shared = []
    with open("/proc/self/maps") as file:
        for line in file:
            _, mode, _, _, _, *path = line.split(maxsplit=5)
            if mode[1] == "w" and mode[3] == "s":
                shared.append(f"memory ({path[0].strip() if path else 'without a file'})")
    for each in sorted(descriptors):
        mode_bits = os.fstat(each).st_mode
        if not stat.S_ISCHR(mode_bits) and not stat.S_ISDIR(mode_bits):
            shared.append(f"a descriptor ({os.readlink(f'/proc/self/fd/{each}')})")
    return shared


def _files_to_reopen(descriptors: set[int]) -> dict[int, tuple[str, int, int]]:
    """Return the regular files that are open read-only.

    All forks would share the read positions of these files, so each fork opens them again.
    """
    files = {}
    for each in descriptors:
        flags = fcntl.fcntl(each, fcntl.F_GETFL)
        file = os.fstat(each)
        if stat.S_ISREG(file.st_mode) and file.st_nlink and flags & os.O_ACCMODE == os.O_RDONLY:
            files[each] = (os.readlink(f"/proc/self/fd/{each}"), flags, os.lseek(each, 0, os.SEEK_CUR))
    return files


def _open_descriptors() -> set[int]:
    descriptors = set()
    for name in os.listdir("/proc/self/fd"):
        # The descriptor through which the directory was listed is closed by now.
        with contextlib.suppress(OSError):
            os.fstat(int(name))
            descriptors.add(int(name))
    return descriptors
