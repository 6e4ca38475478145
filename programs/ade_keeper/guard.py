"""The process guard: starts one child after another, and guards each until it and all its descendants are gone.

It uses only the standard library, because it runs in two places: the worker's spawner forks it, and the warm engine
inside the environment of a configuration is a guard too.

It is a subreaper: orphaned descendants are reparented to it, even after setsid or a double fork, so it finds and kills
all of them. It enforces the time limits itself, so that they hold even while the worker is stopped. It ends everything
when the worker or its own parent is gone. The child in turn dies with its guard, through PR_SET_PDEATHSIG: the kernel
ties that signal to the thread that forked, and a guard has only one thread.

Two alternatives were rejected. Searching /proc/*/environ for a token would need no guard, but a program can clear its
environment, while it cannot change its ancestors. Starting a Python process as the guard of each child would need no
spawner, but would cost as much as a small program itself.
"""

import array
import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, NoReturn

from ade_keeper import proc
from ade_keeper.groups import Group

# The kernel passes at most this many descriptors in one message (SCM_MAX_FD).
DESCRIPTORS_AT_MOST = 253
# SIGKILL works at once, except on a process in uninterruptible sleep. After this time, stop waiting and report the
# processes that are left.
KILL_SECONDS = 5.0
# Processes may still fork while they are being killed: look for new ones after this time.
SWEEP_SECONDS = 0.02
# When memory runs out, the kernel must kill the child and not the worker.
OOM_SCORE = "800"

# Signals that a child must not inherit as ignored: Python ignores SIGPIPE and SIGXFSZ, nohup ignores SIGHUP, and
# ignored signals stay ignored after exec.
_ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]


def execute(order: dict[str, Any], _writing: int) -> NoReturn:
    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606  # execve takes no shell


class ProcessGuard:
    """Starts and guards the children that are ordered through `control`.

    `turn_into` is the last function that the child calls: it becomes the program. It must not return, and it must close
    the descriptor that it is given once the program runs.
    """

    def __init__(
        self, control: socket.socket, parent: int, turn_into: Callable[[dict[str, Any], int], NoReturn] = execute
    ) -> None:
        proc.prctl(proc.PR_SET_CHILD_SUBREAPER, 1)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # for sigtimedwait
        self.control = control
        self.parent = proc.pidfd_of_parent(parent)
        self.turn_into = turn_into
        self.unread = b""
        self.orphaned = False
        self.group: Group | None = None

    def run(self) -> int:
        socket.send_fds(self.control, [_line({"keeper": os.getpid()})], [os.pidfd_open(os.getpid())])
        while received := self.receive_order():
            order, descriptors = received
            if self.start(order, descriptors):
                while not self.child_is_gone() and time.monotonic() < self.give_up_at:
                    self.enforce()
                if self.finish():
                    return 1  # the spawner deals with the processes that are left
        return 0

    def receive_order(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next order with its descriptors, or None when the worker or the parent is gone."""
        descriptors: list[int] = []
        while not self.orphaned:
            while b"\n" in self.unread:
                line, _, self.unread = self.unread.partition(b"\n")
                message = json.loads(line)
                if "env" in message:  # any other message was meant for the previous child and came too late
                    return message, descriptors
            if self.parent in self.wait_for([self.control.fileno(), self.parent]):
                return None
            data, received = self.receive()
            self.unread += data
            descriptors += received
            self.orphaned = not data
        return None

    def receive(self) -> tuple[bytes, list[int]]:
        try:
            data, descriptors, _ = receive(self.control, 1 << 16, DESCRIPTORS_AT_MOST)
        except ConnectionResetError:
            return b"", []
        return data, descriptors

    def wait_for(self, descriptors: list[int], seconds: float = float("inf")) -> set[int]:
        watched = select.poll()
        for each in descriptors:
            watched.register(each, select.POLLIN)
        # Wait at least a millisecond: a timeout that rounds to zero would spin.
        timeout = None if seconds == float("inf") else max(seconds * 1000, 1)
        return {each for each, _ in watched.poll(timeout)}

    def start(self, order: dict[str, Any], descriptors: list[int]) -> bool:
        reading, error_line = -1, b""
        try:
            if time.monotonic() >= order["trust_until"]:
                # This process was stopped for a while, and another worker may have claimed the work by now.
                raise OSError(errno.ETIMEDOUT, "the claim on this work may have expired")
            if len(descriptors) != len(order["numbers"]):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            reading, writing = os.pipe()
            descriptors.append(writing)
            guard = os.getpid()
            self.group = Group.of(order.get("group"))
            self.pid = os.fork()
            if self.pid == 0:
                become(order, descriptors[:-1], guard, writing, self.turn_into, self.group)
        except OSError as error:
            error_line = failure("fork", error)
        for each in descriptors:
            os.close(each)
        error_line = error_line or self.wait_for_exec(reading)
        if reading >= 0:
            os.close(reading)
        if error_line:
            if self.group:
                self.group.remove()
            self.control.sendall(error_line)
            return False
        self.number = order["number"]
        self.grace = order["grace_seconds"]
        self.sandboxed = order["sandboxed"]
        self.why: str | None = None
        self.max_rss_bytes, self.cpu_seconds = 0, 0.0
        self.untrusted_at = order["trust_until"]
        self.kill_at = self.give_up_at = float("inf")
        started_at = time.monotonic()
        self.deadline = started_at + order["wall_seconds"]
        self.pidfd = os.pidfd_open(self.pid)
        process = proc.process(self.pid)
        message = {"pid": self.pid, "start_ticks": process.start_ticks if process else 0, "at": started_at}
        socket.send_fds(self.control, [_line(message)], [self.pidfd])
        return True

    def wait_for_exec(self, reading: int) -> bytes:
        """Return the error that the child writes to this pipe, or b"" once the program runs."""
        if reading in self.wait_for([reading, self.control.fileno(), self.parent]):
            error_line = os.read(reading, 1 << 16)
            if error_line:
                os.waitpid(self.pid, 0)
            return error_line
        os._exit(1)  # The worker or the parent is gone. The child dies with this process.

    def child_is_gone(self) -> bool:
        until = min(self.deadline, self.untrusted_at, self.kill_at, self.give_up_at)
        listening = [] if self.orphaned else [self.control.fileno(), self.parent]
        ready = self.wait_for([self.pidfd, *listening], until - time.monotonic())
        if self.parent in ready:
            self.become_orphan()
        elif self.control.fileno() in ready:
            data, _ = self.receive()
            if not data:
                self.become_orphan()
            *lines, self.unread = (self.unread + data).split(b"\n")
            for command in map(json.loads, lines):
                if command["number"] != self.number:
                    continue
                if "trust_until" in command:
                    self.untrusted_at = command["trust_until"]
                else:
                    self.begin_end("stopped", command["stop"])
        return self.pidfd in ready

    def become_orphan(self) -> None:
        self.orphaned = True
        self.begin_end("orphaned", 0)

    def enforce(self) -> None:
        now = time.monotonic()
        if now >= self.untrusted_at:
            self.untrusted_at = float("inf")
            self.begin_end("trust_ended", 0)
        if now >= self.deadline:
            self.deadline = float("inf")
            self.begin_end("timed_out", self.grace)
        if now >= self.kill_at:
            self.kill_at = float("inf")
            self.give_up_at = min(self.give_up_at, now + KILL_SECONDS)
            # The child's descendants are then reparented to this process, and `end_the_rest` kills them.
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def begin_end(self, why: str, grace: float) -> None:
        self.why = self.why or why
        self.kill_at = min(self.kill_at, time.monotonic() + grace)
        if grace <= 0:
            return
        # With bubblewrap, send SIGTERM to the group inside the sandbox: bubblewrap itself would end at once and kill
        # the program.
        inner = [each for each in proc.processes() if each.parent == self.pid] if self.sandboxed else []
        group = next((each.group for each in inner if each.group == each.session), self.pid)
        # A stopped process handles SIGTERM only after it continues.
        for number in (signal.SIGTERM, signal.SIGCONT):
            with contextlib.suppress(OSError):
                os.killpg(group, number)

    def finish(self) -> list[int]:
        ended_at = time.monotonic()
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        self.count(usage)
        os.close(self.pidfd)
        if self.group:
            # Forbid further forks; otherwise each search could find new processes.
            with contextlib.suppress(OSError):
                self.group.limit(0)
        left = self.end_the_rest()
        if self.group:
            self.group.remove()
        report = {
            "status": status if pid else None,
            "why": self.why,
            "at": ended_at,
            "max_rss_bytes": self.max_rss_bytes,
            "cpu_seconds": self.cpu_seconds,
            "left_behind": left,
            "keeper_is_free": not left,
        }
        with contextlib.suppress(OSError):
            self.control.sendall(_line(report))
        return left

    def end_the_rest(self) -> list[int]:
        give_up_at = min(self.give_up_at, time.monotonic() + KILL_SECONDS)
        # All processes in a sandbox die with its first process and only need to be reaped.
        look_at = min(give_up_at, time.monotonic() + (SWEEP_SECONDS if self.sandboxed else 0))
        rest: list[proc.Process] = []
        while self.has_children():
            if time.monotonic() >= look_at:
                rest = proc.descendants(os.getpid())
                for each in rest:
                    proc.send_exactly(each, signal.SIGKILL)
            if time.monotonic() >= give_up_at:
                return [each.pid for each in rest if each.state != "Z"]
            signal.sigtimedwait([signal.SIGCHLD], SWEEP_SECONDS)
        return []

    def has_children(self) -> bool:
        """Reap all children that have ended, and return whether any children are left.

        bubblewrap does not wait for its sandbox, so only this call sees the resource usage of the processes inside.
        """
        with contextlib.suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                self.count(ended[2])
            return True
        return False

    def count(self, usage: resource.struct_rusage) -> None:
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime


def become(
    order: dict[str, Any],
    descriptors: list[int],
    guard: int,
    writing: int,
    turn_into: Callable[[dict[str, Any], int], NoReturn],
    group: Group | None,
) -> NoReturn:
    """Turn this process into the program. If a step fails, write its name and error to the pipe."""
    step = "setsid"
    try:
        os.setsid()
        step = "prctl"
        proc.prctl(proc.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)  # the guard died before the signal was set
        # A fork of a warm engine has already inherited PR_SET_NO_NEW_PRIVS and the OOM score.
        if not order["sandboxed"] and not order["is_fork"]:
            proc.prctl(proc.PR_SET_NO_NEW_PRIVS, 1)  # bubblewrap sets it itself, and is set-uid on some hosts
        if not order["is_fork"]:
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write(OOM_SCORE)
        step = "group"
        if group:
            group.join()
        if order["sandboxed"] and os.geteuid() == 0:
            # A container may forbid this protection. A sandbox without it is still better than none.
            with contextlib.suppress(OSError):
                proc.protect_devices()
        step = "descriptors"
        numbers: list[int] = order["numbers"]
        above = max(numbers) + 1
        *sources, writing = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in [*descriptors, writing]]
        for source, number in zip(sources, numbers, strict=False):
            os.dup2(source, number)
        step = "chdir"
        os.chdir(order["cwd"])
        os.umask(0o077)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # A fork is a Python process already and needs Python's signal handling, which turns SIGPIPE into an exception.
        for number in () if order["is_fork"] else _ignored:
            signal.signal(number, signal.SIG_DFL)
        step = "limits"
        _limit(order["limits"])
        step = "exec"
        turn_into(order, writing)
    except BaseException as error:
        # Catch everything: this process must never return into the guard's code.
        os.write(writing, failure(step, error))
    finally:
        os._exit(127)


def _limit(limits: dict[str, int]) -> None:
    for name, limit in limits.items():
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        soft = limit if most == resource.RLIM_INFINITY else min(limit, most)
        # RLIMIT_CPU sends a signal at the soft limit; at the hard limit the kernel kills.
        hard = soft + 1 if name == "RLIMIT_CPU" and soft != most else soft
        resource.setrlimit(number, (soft, hard))


def receive(connection: socket.socket, size: int, descriptors_at_most: int) -> tuple[bytes, list[int], bool]:
    """Return the message, its descriptors, and whether all descriptors arrived.

    The descriptors are close-on-exec. Python's recv_fds cannot do this, because it ignores that flag.
    """
    numbers = array.array("i")
    space = socket.CMSG_SPACE(descriptors_at_most * numbers.itemsize)
    message, ancillary, flags, _ = connection.recvmsg(size, space, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in ancillary:
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return message, list(numbers), not flags & socket.MSG_CTRUNC


def failure(step: str, error: BaseException) -> bytes:
    number = error.errno if isinstance(error, OSError) else None
    return _line({"failed": number, "step": step, "error": str(error)})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
