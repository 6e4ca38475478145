"""Access to /proc and prctl.

This module imports little: the spawner imports it, and every guard is a copy of the spawner.
"""

import ctypes
import os
import signal
import sys
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# From <linux/mount.h> and <linux/sched.h>.
_MS_RDONLY, _MS_NOSUID, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 1, 2, 8, 32, 4096, 16384, 1 << 19
_CLONE_NEWNS = 0x00020000
# The devices of this machine that bubblewrap makes visible in its sandbox.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]


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
    running = (process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [each for each in running if each]


def descendants(root: int) -> list[Process]:
    """Return all descendants, parents first. This reads all of /proc, which takes some milliseconds."""
    children: dict[int, list[Process]] = {}
    for each in processes():
        children.setdefault(each.parent, []).append(each)
    below = children.get(root, [])[:]
    for each in below:
        below += children.get(each.pid, [])
    return below


def send_exactly(target: Process, number: int) -> bool:
    """Signal this process, never a later process with the same pid. Return False if the process is gone."""
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


def protect_devices() -> None:
    """Prevent this process and its children from changing the mode or owner of devices; writing stays possible.

    bubblewrap makes this machine's devices visible in the sandbox, and any process with root's user ID owns them, even
    without capabilities. A device that is mounted read-only here stays read-only in the sandbox.
    """
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    _mount(None, "/", _MS_REC | _MS_SLAVE)
    for path in DEVICES:
        if os.path.exists(path):
            _mount(path, path, _MS_BIND)
            _mount(None, path, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NOEXEC)


def _mount(source: str | None, target: str, flags: int) -> None:
    if _libc.mount(source.encode() if source else None, target.encode(), None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def pidfd_of_parent(expected: int) -> int:
    """Return a descriptor that becomes readable when the parent ends. Exit if the parent is not the expected process.

    PR_SET_PDEATHSIG would not do: the kernel sends its signal when the *thread* that started this process ends, even if
    the parent process lives on.
    """
    if expected == 0 and os.getpid() == 1:
        # This is the first process of a sandbox, and its parent is outside. When that parent ends, the sandbox ends
        # too, so watch this process itself: its descriptor never becomes readable here.
        return os.pidfd_open(os.getpid())
    pidfd = os.pidfd_open(expected)
    if os.getppid() != expected:
        sys.exit(f"This program must be started by process {expected}, not by process {os.getppid()}.")
    return pidfd
