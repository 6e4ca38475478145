"""What /proc and prctl say and do. Imports little: every keeper is a copy of the launcher, which imports this."""

import ctypes
import os
import signal
import sys
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


class Process(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int


def process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def processes() -> list[Process]:
    found = (process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [each for each in found if each]


def descendants(root: int) -> list[Process]:
    """All of them, parents first. Reads the whole of /proc: some milliseconds."""
    children: dict[int, list[Process]] = {}
    for each in processes():
        children.setdefault(each.parent, []).append(each)
    found = children.get(root, [])[:]
    for each in found:
        found += children.get(each.pid, [])
    return found


def send_exactly(target: Process, number: int) -> bool:
    """Signals this process and none that got its number later."""
    try:
        pidfd = os.pidfd_open(target.pid)
    except OSError:
        return False
    try:
        now = process(target.pid)
        if now is None or now.start_ticks != target.start_ticks:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"prctl {option}")


def pidfd_of_parent(expected: int) -> int:
    """Not PDEATHSIG, which fires when the *thread* that started us ends, though its process lives on."""
    if expected == 0 and os.getpid() == 1:
        # The first process of a sandbox: what is outside takes it along. Of its own end it never hears.
        return os.pidfd_open(os.getpid())
    pidfd = os.pidfd_open(expected)
    if os.getppid() != expected:
        sys.exit(f"expected to be started by process {expected}, found {os.getppid()}")
    return pidfd
