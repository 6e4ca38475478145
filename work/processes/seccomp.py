"""A seccomp filter (classic BPF) that forbids sandboxed programs certain system calls.

It forbids calls that make objects which outlive a process, and calls that reach beyond the sandbox: System V shared
memory and queues, keyrings, mounts, namespaces, and the memory of other processes. All other calls are allowed.
"""

import errno
import os
import struct
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

# The values by which a filter recognises a call's architecture, from <linux/audit.h>.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# On x86_64, x32 calls have numbers of their own, which contain this bit. Unless refused, they would bypass the filter.
_X32_BIT = 0x40000000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Offsets in `struct seccomp_data`. The lower half of an argument comes first on both architectures.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

# The flags with which clone() and unshare() make namespaces: time, mount, cgroup, uts, ipc, user, pid, net.
_NAMESPACES = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# These ioctls can insert characters into a terminal's input, as if another user had typed them.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


class Calls(NamedTuple):
    x86_64: int | None
    aarch64: int | None


# Calls for which the program is killed. No program makes them by accident, or could go on without them.
FATAL = {
    "mount": Calls(165, 40),
    "umount2": Calls(166, 39),
    "pivot_root": Calls(155, 41),
    "chroot": Calls(161, 51),
    "setns": Calls(308, 268),
    "open_tree": Calls(428, 428),
    "move_mount": Calls(429, 429),
    "fsopen": Calls(430, 430),
    "fsconfig": Calls(431, 431),
    "fsmount": Calls(432, 432),
    "fspick": Calls(433, 433),
    "mount_setattr": Calls(442, 442),
    "open_tree_attr": Calls(467, 467),
}

# Calls that return an error, because libraries try some of them and work without them.
REFUSED = {
    # System V objects remain after the process has ended.
    "shmget": Calls(29, 194),
    "shmat": Calls(30, 196),
    "shmctl": Calls(31, 195),
    "semget": Calls(64, 190),
    "semop": Calls(65, 193),
    "semctl": Calls(66, 191),
    "semtimedop": Calls(220, 192),
    "msgget": Calls(68, 186),
    "msgsnd": Calls(69, 189),
    "msgrcv": Calls(70, 188),
    "msgctl": Calls(71, 187),
    # POSIX message queues. POSIX semaphores and shared memory are files in /dev/shm.
    "mq_open": Calls(240, 180),
    "mq_unlink": Calls(241, 181),
    "add_key": Calls(248, 217),
    "request_key": Calls(249, 218),
    "keyctl": Calls(250, 219),
    "ptrace": Calls(101, 117),
    "process_vm_readv": Calls(310, 270),
    "process_vm_writev": Calls(311, 271),
    "process_madvise": Calls(440, 440),
    "pidfd_getfd": Calls(438, 438),
    "kcmp": Calls(312, 272),
    # Large parts of the kernel's attack surface that no child needs.
    "bpf": Calls(321, 280),
    "perf_event_open": Calls(298, 241),
    "userfaultfd": Calls(323, 282),
    "io_uring_setup": Calls(425, 425),
    "io_uring_enter": Calls(426, 426),
    "io_uring_register": Calls(427, 427),
    "init_module": Calls(175, 105),
    "finit_module": Calls(313, 273),
    "delete_module": Calls(176, 106),
    "kexec_load": Calls(246, 104),
    "kexec_file_load": Calls(320, 294),
    "open_by_handle_at": Calls(304, 265),
    "name_to_handle_at": Calls(303, 264),
    "quotactl": Calls(179, 60),
    "quotactl_fd": Calls(443, 443),
    "swapon": Calls(167, 224),
    "swapoff": Calls(168, 225),
    "reboot": Calls(169, 142),
    "syslog": Calls(103, 116),
    "acct": Calls(163, 89),
    "uselib": Calls(134, None),
    "modify_ldt": Calls(154, None),
    "fanotify_init": Calls(300, 262),
}

# These calls create nameless files in memory. No file limit counts that memory, and the files can be passed to other
# processes. glibc does not need these calls.
_MEMFD = {"memfd_create": Calls(319, 279), "memfd_secret": Calls(447, 447)}
# The flags of clone3() are in a structure, which a filter cannot read. So the filter pretends that clone3() does not
# exist, and programs fall back to clone().
_CLONE3 = Calls(435, 435)
_CLONE, _UNSHARE = Calls(56, 220), Calls(272, 97)
_IOCTL = Calls(16, 29)
# SO_SNDBUF and SO_RCVBUF at the level SOL_SOCKET. Data in sockets is kernel memory that belongs to no process, so
# `usage.py` estimates it from the number of sockets. For this, buffers must keep their default size: a call that sets
# their size reports success but has no effect.
_SETSOCKOPT, _SOL_SOCKET, _BUFFERS = Calls(54, 208), 1, [7, 8]
# With these calls, a program could slow down process 1 of the sandbox, which forks the other processes. So they are
# refused for process 1. The ID 0, which means the process itself, and all other IDs are allowed. The values are the
# call and the position of its process ID.
_OF_A_PROCESS = {
    "prlimit64": (Calls(302, 261), 0),
    "sched_setaffinity": (Calls(203, 122), 0),
    "sched_setscheduler": (Calls(144, 119), 0),
    "sched_setparam": (Calls(142, 118), 0),
    "sched_setattr": (Calls(314, 274), 0),
    "setpriority": (Calls(141, 140), 1),
    "ioprio_set": (Calls(251, 30), 1),
}
# With these values of the first argument, the calls address a group or a user, and so also other processes.
_OF_MORE_THAN_ONE = {"setpriority": (Calls(141, 140), [1, 2]), "ioprio_set": (Calls(251, 30), [2, 3])}


@cache
def program() -> bytes | None:
    """Return the filter for this machine, or None on another architecture."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return None
    filters = [
        _statement(_LOAD, _ARCHITECTURE),
        _jump(_JUMP_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _statement(_RETURN, _KILL),
        _statement(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        filters += [_jump(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _statement(_RETURN, _KILL)]
    filters += _when_called(machine, FATAL.values(), _KILL)
    filters += _when_called(machine, [*REFUSED.values(), *_MEMFD.values()], _REFUSE | errno.EPERM)
    filters += _when_called(machine, [_CLONE3], _REFUSE | errno.ENOSYS)
    for calls in (_CLONE, _UNSHARE):
        filters += _when_argument(machine, calls, 0, _JUMP_ANY_BIT, [_NAMESPACES], _KILL)
    filters += _when_argument(machine, _IOCTL, 1, _JUMP_EQUAL, [_TIOCSTI, _TIOCLINUX], _REFUSE | errno.EPERM)
    options = [part for each in _BUFFERS for part in (_jump(_JUMP_EQUAL, each, 0, 1), _statement(_RETURN, _REFUSE | 0))]
    level = [_statement(_LOAD, _ARGUMENTS + 8), _jump(_JUMP_EQUAL, _SOL_SOCKET, 0, 1 + len(options))]
    body = [*level, _statement(_LOAD, _ARGUMENTS + 16), *options, _statement(_LOAD, _NUMBER)]
    filters += [_jump(_JUMP_EQUAL, getattr(_SETSOCKOPT, machine), 0, len(body)), *body]
    for calls, position in _OF_A_PROCESS.values():
        filters += _when_argument(machine, calls, position, _JUMP_EQUAL, [1], _REFUSE | errno.EPERM)
    for calls, kinds in _OF_MORE_THAN_ONE.values():
        filters += _when_argument(machine, calls, 0, _JUMP_EQUAL, kinds, _REFUSE | errno.EPERM)
    return b"".join([*filters, _statement(_RETURN, _ALLOW)])


def _when_called(machine: str, calls: Iterable[Calls], answer: int) -> list[bytes]:
    numbers = [number for each in calls if (number := getattr(each, machine)) is not None]
    return [part for number in numbers for part in (_jump(_JUMP_EQUAL, number, 0, 1), _statement(_RETURN, answer))]


def _when_argument(
    machine: str, calls: Calls, position: int, compare: int, values: list[int], answer: int
) -> list[bytes]:
    """Answer a call by the value of an argument.

    Compare only the lower half of the argument, because the kernel ignores the upper half in these calls.
    """
    checks = [part for value in values for part in (_jump(compare, value, 0, 1), _statement(_RETURN, answer))]
    body = [_statement(_LOAD, _ARGUMENTS + 8 * position), *checks, _statement(_LOAD, _NUMBER)]
    return [_jump(_JUMP_EQUAL, getattr(calls, machine), 0, len(body)), *body]


def _statement(code: int, value: int) -> bytes:
    return _jump(code, value, 0, 0)


def _jump(code: int, value: int, when_true: int, when_false: int) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
