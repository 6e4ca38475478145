"""This process's end of `work/children/launch.py`: starts the launcher when first needed, and orders children."""

import atexit
import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from ade_keeper.keeper import receive

# It answers within a millisecond. Longer than this and it is stopped, or the machine is.
ANSWER_SECONDS = 10.0
# As many as a worker has slots; more are ended when their child has.
IDLE_KEEPERS = 8
# Isolated and without site-packages: it starts in 6 ms, and is small to fork.
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from work.children.launch import serve; serve(*map(int, sys.argv[2:]))"
)


class Launcher:
    """Not tied to the thread that starts it: it ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._doorbell: socket.socket | None = None

    def ring(self, descriptors: Sequence[int]) -> None:
        """Asks for a keeper, which gets this socket as its control. Raises OSError."""
        with self._lock:
            with suppress(BrokenPipeError, ConnectionResetError):
                return self._send(descriptors)
            self._forget()  # it was killed: all its children went with it, the next ones need another
            return self._send(descriptors)

    def _send(self, descriptors: Sequence[int]) -> None:
        if self._doorbell is None:
            self._start()
        assert self._doorbell is not None  # for mypy: _start has set it or raised
        socket.send_fds(self._doorbell, [b"!"], descriptors)

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as opened:
            opened.enter_context(ours)
            self._process = subprocess.Popen(
                [*_PYTHON, "-c", _PROGRAM, _ROOT, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                # Nothing of ours: a child of the same user can read it in /proc.
                env={},
                start_new_session=True,
            )
            opened.pop_all()
        ours.settimeout(ANSWER_SECONDS)
        self._doorbell = ours

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._doorbell is not None:
            self._doorbell.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._doorbell = self._process = None

    def abandon(self) -> None:
        """In a forked process: the launcher is its parent's. No lock: nobody is left to release it."""
        if self._doorbell is not None:
            self._doorbell.close()
        if self._process is not None:
            self._process.returncode = 0


class Wires:
    """The descriptors of one start. Ours stay with the child's object, theirs are closed once handed over."""

    def __init__(self, ours: ExitStack, theirs: ExitStack, pass_fds: Sequence[int]) -> None:
        self.ours = ours
        self.theirs = theirs
        self.descriptors: list[int] = []
        self.numbers: list[int] = []
        for descriptor in pass_fds:
            self.give(descriptor, descriptor)

    def give(self, descriptor: int, number: int) -> None:
        os.fstat(descriptor)  # raises now what sending it would raise with an order half written
        self.descriptors.append(descriptor)
        self.numbers.append(number)

    def open_null(self) -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        self.theirs.callback(os.close, descriptor)
        return descriptor

    def pipe(self, number: int) -> int:
        reading, writing = os.pipe()
        self.ours.callback(os.close, reading)
        self.theirs.callback(os.close, writing)
        os.set_blocking(reading, False)
        self.give(writing, number)
        return reading

    def free_number(self) -> int:
        return next(number for number in range(3, 1 << 16) if number not in self.numbers)


class Answer(NamedTuple):
    """What a keeper said of the child it started."""

    number: int
    pid: int
    start_ticks: int
    at: float
    unread: bytes
    pidfd: int


class Refused(Exception):
    """Nothing was started; whoever refused says at which step."""

    def __init__(self, step: str, number: int | None, error: str) -> None:
        super().__init__(error)
        self.step = step
        self.errno = number


class Keeper:
    """One process that keeps one child at a time. Forking one costs more than many a child, so it is used again."""

    def __init__(self, control: socket.socket) -> None:
        """Takes over the socket, once the keeper at its other end has said that it is there."""
        self._orders = 0
        self.control = control
        with ExitStack() as opened:
            opened.enter_context(control)
            control.settimeout(ANSWER_SECONDS)
            _, _, self.pidfd = self._receive(opened)
            opened.pop_all()

    @classmethod
    def of(cls, launcher: Launcher) -> Self:
        control, there = socket.socketpair()
        try:
            with there:
                launcher.ring([there.fileno()])
            return cls(control)
        except BaseException:
            control.close()
            raise

    def start(self, order: dict[str, Any], wires: Wires) -> Answer:
        """Raises Refused.

        BrokenPipeError and ConnectionResetError say that it has not read the order, so nothing was started: the
        kernel resets a connection that is closed with something unread. After any other OSError nobody knows.
        """
        self._orders += 1
        message = json.dumps(order | {"numbers": wires.numbers, "number": self._orders}).encode() + b"\n"
        # Room for the child's pidfd: if there is none, that must show before the child starts.
        spare = os.dup(self.pidfd)
        try:
            sent = socket.send_fds(self.control, [message], wires.descriptors)
            self.control.sendall(message[sent:])
        finally:
            os.close(spare)
        answer, unread, pidfd = self._receive(wires.ours)
        return Answer(self._orders, answer["pid"], answer["start_ticks"], answer["at"], unread, pidfd)

    def _receive(self, opened: ExitStack) -> tuple[dict[str, Any], bytes, int]:
        data, descriptors = b"", list[int]()
        while b"\n" not in data:
            part, received, complete = receive(self.control, 1 << 16, 1)
            for each in received:
                opened.callback(os.close, each)
            if not complete:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            if not part:
                raise ConnectionAbortedError(errno.ECONNABORTED, "the launcher was killed, or has too many open files")
            data += part
            descriptors += received
        line, _, unread = data.partition(b"\n")
        answer = json.loads(line)
        if "failed" in answer:
            raise Refused(answer["step"], answer["failed"], answer["error"])
        return answer, unread, descriptors[0]

    def close(self) -> None:
        self.control.close()
        os.close(self.pidfd)


class Pool:
    """The launcher and its idle keepers."""

    def __init__(self) -> None:
        self._launcher = Launcher()
        self._retired: list[Launcher] = []
        self._idle: list[Keeper] = []

    def start(self, order: dict[str, Any], wires: Wires) -> tuple[Keeper, Answer]:
        while True:
            keeper, fresh = self._take()
            try:
                return keeper, keeper.start(order, wires)
            except Refused:
                self.give_back(keeper)
                raise
            except (BrokenPipeError, ConnectionResetError):
                keeper.close()  # it was killed while it was idle, or its launcher was
                if fresh:
                    raise
            except BaseException:
                keeper.close()
                raise

    def _take(self) -> tuple[Keeper, bool]:
        with suppress(IndexError):
            return self._idle.pop(), False
        launcher = self._launcher
        try:
            try:
                return Keeper.of(launcher), True
            except ConnectionAbortedError:
                return Keeper.of(launcher), True  # it was killed with our call unanswered; now it is started again
        except TimeoutError:
            # It is stopped, or stuck. Its keepers may be well, and end with it: so it stays, and another serves.
            if self._launcher is launcher:
                self._retired.append(launcher)
                self._launcher = Launcher()
            raise

    def give_back(self, keeper: Keeper) -> None:
        if len(self._idle) < IDLE_KEEPERS:
            self._idle.append(keeper)
        else:
            keeper.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        for each in [self._launcher, *self._retired]:
            each.close()
        self._retired.clear()

    def abandon(self) -> None:
        """In a forked process: all this is its parent's, only the descriptors are to be closed."""
        for keeper in self._idle:
            keeper.close()
        for each in [self._launcher, *self._retired]:
            each.abandon()


_pool = Pool()


def start(order: dict[str, Any], wires: Wires) -> tuple[Keeper, Answer]:
    return _pool.start(order, wires)


def give_back(keeper: Keeper) -> None:
    """Once its child is gone with all that it forked."""
    _pool.give_back(keeper)


def close() -> None:
    """Ends the launcher, its keepers and their children. The next child starts others."""
    _pool.close()


def _after_fork() -> None:
    global _pool
    _pool.abandon()
    _pool = Pool()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close)
