"""The worker's side of the spawner. Starts `work/processes/spawner.py` when first needed, and orders children."""

import atexit
import errno
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import ade_keeper
from ade_keeper.guard import receive

# The spawner normally answers within a millisecond. If it takes longer than this, it or the machine has been suspended.
ANSWER_SECONDS = 10.0
# The maximum size of one answer. A configuration can replace the code of the guard in its sandbox and send anything.
ANSWER_BYTES = 1 << 20
# Numbers in an answer must be below this. NaN fails this comparison too.
LARGEST = 1 << 62
# The maximum number of idle guards, about one per worker thread. Any further guard ends with its child.
IDLE_GUARDS = 8
# The spawner runs isolated and without site-packages, so that it starts in 6 ms and is cheap to fork.
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")
# The import paths of the spawner and of ade_keeper.
_FOLDERS = [str(Path(__file__).parents[2]), str(Path(ade_keeper.__path__[0]).parent)]
_PROGRAM = (
    "import sys; sys.path += sys.argv[1:3]; from work.processes.spawner import serve; serve(*map(int, sys.argv[3:]))"
)


class SpawnerClient:
    """The spawner process. It ends with this process, not with the thread that starts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._doorbell: socket.socket | None = None

    def ring(self, descriptors: Sequence[int]) -> None:
        """Request a guard, and pass it the descriptor of its control socket. Raise OSError if that fails."""
        with self._lock:
            with suppress(BrokenPipeError, ConnectionResetError):
                return self._send(descriptors)
            self._forget()  # The spawner was killed, and all its children with it. Start another.
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
                [*_PYTHON, "-c", _PROGRAM, *_FOLDERS, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                # The environment is empty, because children of the same user can read it in /proc.
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
        """Close the descriptors in a forked process, because the spawner belongs to its parent.

        Do not take the lock: in the fork it may stay locked forever.
        """
        if self._doorbell is not None:
            self._doorbell.close()
        if self._process is not None:
            self._process.returncode = 0


class Wires:
    """The descriptors for starting one child. `ours` stay with the `Child`; `theirs` are closed once they are sent."""

    def __init__(self, ours: ExitStack, theirs: ExitStack, pass_fds: Sequence[int]) -> None:
        self.ours = ours
        self.theirs = theirs
        self.descriptors: list[int] = []
        self.numbers: list[int] = []
        for descriptor in pass_fds:
            self.give(descriptor, descriptor)

    def give(self, descriptor: int, number: int) -> None:
        os.fstat(descriptor)  # an invalid descriptor must fail now, not while an order is half sent
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
    """A guard's report about the child that it has started."""

    number: int
    pid: int
    start_ticks: int
    at: float
    unread: bytes
    pidfd: int


class Refused(Exception):
    """The guard refused an order, and started nothing. `step` says at which step it failed."""

    def __init__(self, step: str, number: int | None, error: str) -> None:
        super().__init__(error)
        self.step = step
        self.errno = number


class GuardClient:
    """The worker's side of a process guard. A guard has one child at a time, and is reused because forking is
    expensive.
    """

    def __init__(self, control: socket.socket) -> None:
        """Take over the socket, and wait for the first report of the guard at its other end."""
        self._orders = 0
        self.control = control
        with ExitStack() as opened:
            opened.enter_context(control)
            control.settimeout(ANSWER_SECONDS)
            answer, _, self.pidfd = self._receive(opened)
            # The guard's pid as the guard sees it. If the guard is inside a sandbox, the pid is different outside.
            self.pid = _number(answer, "keeper")
            opened.pop_all()

    @classmethod
    def of(cls, spawner: SpawnerClient) -> Self:
        control, there = socket.socketpair()
        try:
            with there:
                spawner.ring([there.fileno()])
            return cls(control)
        except BaseException:
            control.close()
            raise

    def start(self, order: dict[str, Any], wires: Wires) -> Answer:
        """Start a child. Raise Refused or OSError if that fails.

        BrokenPipeError and ConnectionResetError mean that nothing was started, because the guard has not read the
        order: the kernel resets a connection that is closed with unread data. After any other OSError it is unknown
        whether the child was started.
        """
        self._orders += 1
        message = json.dumps(order | {"numbers": wires.numbers, "number": self._orders}).encode() + b"\n"
        # Reserve a descriptor for the child's pidfd, so that a shortage of descriptors shows before the child starts.
        spare = os.dup(self.pidfd)
        sent_at = time.monotonic()
        try:
            size = socket.send_fds(self.control, [message], wires.descriptors)
            self.control.sendall(message[size:])
        finally:
            os.close(spare)
        answer, unread, pidfd = self._receive(wires.ours)
        pid, ticks, at = (_number(answer, name) for name in ("pid", "start_ticks", "at"))
        # The time limits count from `at`. A guard must not extend them by reporting a time in the future.
        return Answer(self._orders, int(pid), int(ticks), max(sent_at, min(at, time.monotonic())), unread, pidfd)

    def _receive(self, opened: ExitStack) -> tuple[dict[str, Any], bytes, int]:
        """Return the answer, any data after it, and its descriptor. Raise Refused, or OSError if it is invalid."""
        data, descriptors = b"", list[int]()
        give_up_at = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in data:
            if time.monotonic() >= give_up_at:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            part, received, complete = receive(self.control, 1 << 16, 1)
            for each in received:
                opened.callback(os.close, each)
            if not complete:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            if len(data) > ANSWER_BYTES or len(descriptors) + len(received) > 1:
                raise OSError(errno.EPROTO, "its answer was too long")
            if not part:
                raise ConnectionAbortedError(errno.ECONNABORTED, "the spawner was killed, or has too many open files")
            data += part
            descriptors += received
        line, _, unread = data.partition(b"\n")
        answer = parse(line)
        if "failed" in answer:
            number = answer["failed"] if isinstance(answer["failed"], int) else None
            raise Refused(str(answer.get("step")), number, str(answer.get("error")))
        if not descriptors:
            raise OSError(errno.EPROTO, "it sent no file descriptor")
        return answer, unread, descriptors[0]

    def close(self) -> None:
        self.control.close()
        os.close(self.pidfd)


def parse(line: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise OSError if the line is anything else."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OSError(errno.EPROTO, "its answer was not JSON") from error
    if not isinstance(answer, dict):
        raise OSError(errno.EPROTO, "its answer was not an object")
    return answer


def _number(answer: dict[str, Any], name: str) -> Any:
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise OSError(errno.EPROTO, f"its answer had no valid {name}")
    return value


class Pool:
    """The spawner and its idle guards."""

    def __init__(self) -> None:
        self._spawner = SpawnerClient()
        self._retired: list[SpawnerClient] = []
        self._idle: list[GuardClient] = []

    def start(self, order: dict[str, Any], wires: Wires) -> tuple[GuardClient, Answer]:
        while True:
            guard, is_new = self._take()
            try:
                return guard, guard.start(order, wires)
            except Refused:
                self.give_back(guard)
                raise
            except (BrokenPipeError, ConnectionResetError):
                guard.close()  # the guard or its spawner was killed while the guard was idle: try another guard
                if is_new:
                    raise
            except BaseException:
                guard.close()
                raise

    def _take(self) -> tuple[GuardClient, bool]:
        with suppress(IndexError):
            return self._idle.pop(), False
        spawner = self._spawner
        try:
            try:
                return GuardClient.of(spawner), True
            except ConnectionAbortedError:
                return GuardClient.of(spawner), True  # the spawner was killed before it answered: this restarts it
        except TimeoutError:
            # The spawner is suspended or stuck. Its guards may still work, but would end with it. So start another
            # spawner without ending this one.
            if self._spawner is spawner:
                self._retired.append(spawner)
                self._spawner = SpawnerClient()
            raise

    def give_back(self, guard: GuardClient) -> None:
        if len(self._idle) < IDLE_GUARDS:
            self._idle.append(guard)
        else:
            guard.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        for each in [self._spawner, *self._retired]:
            each.close()
        self._retired.clear()

    def abandon(self) -> None:
        """Close the descriptors in a forked process, because everything here belongs to its parent."""
        for guard in self._idle:
            guard.close()
        for each in [self._spawner, *self._retired]:
            each.abandon()


_pool = Pool()


def start(order: dict[str, Any], wires: Wires) -> tuple[GuardClient, Answer]:
    return _pool.start(order, wires)


def give_back(guard: GuardClient) -> None:
    """Make a guard available again once its child and all the child's descendants are gone."""
    _pool.give_back(guard)


def close() -> None:
    """End the spawner, its guards and their children. The next call of `start` starts a new spawner."""
    _pool.close()


def _after_fork() -> None:
    global _pool
    _pool.abandon()
    _pool = Pool()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close)
