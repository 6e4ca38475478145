"""Runs other people's programs: in sessions of their own, within limits, their output taken in, their end certain.

`run` does it all; `spawn` gives a `Child` to whoever waits for more than one thing. The process in between,
which starts the child and kills what it leaves, is `work/children/launch.py`: a worker's threads never fork.
"""

import errno
import logging
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, Required, TypedDict, Unpack

from work.children import launcher
from work.children.child import CannotStart, Child, Ended, Pipes
from work.children.launcher import Wires
from work.children.output import Events, Line, Output
from work.children.processes import ProcessId, end_recorded
from work.children.sandbox import Walls, bubblewrap, environment, wrap

__all__ = [
    "CannotStart", "Child", "Ended", "Level", "Limits", "Line", "Options", "ProcessId", "end_recorded", "run",
    "sandbox_level", "spawn",
]  # fmt: skip

Level = Literal["bubblewrap", "limits"]
OnOutput = Callable[[list[Line]], None]
OnEvent = Callable[[dict[str, Any]], None]
Path = str | os.PathLike[str]

# Between SIGTERM and SIGKILL: time to flush a file, not to finish the work.
GRACE_SECONDS = 5.0
# Inside the child's directory, and not among what it made.
SCRATCH = ".tmp"
# Where a child finds the number of the descriptor for its events.
EVENTS_VARIABLE = "ADE_EVENTS_FD"

logger = logging.getLogger(__name__)


class Times(TypedDict):
    wall_seconds: float
    grace_seconds: float


@dataclass(frozen=True)
class Limits:
    """None: no limit. Memory and CPU time are per process, not for all that it forks; the wall clock ends all."""

    # A run's default; a build and an extraction bring their own.
    wall_seconds: float | None = 120.0
    # Twice the wall clock: two busy threads all the time. Behind it only if wall_seconds is None or raised.
    cpu_seconds: int | None = 240
    # Addresses, not memory: numeric libraries reserve some GB for their threads and use a tenth.
    address_space_bytes: int | None = 4 << 30
    # The largest artifact, and an end to a file that grows for ever.
    file_size_bytes: int | None = 512 << 20
    # What select() can handle, and plenty for one document.
    open_files: int | None = 1024
    # Counts all threads of this *user*, the worker's and other children's too: far above what they need, far
    # below what stops the machine. The kernel ignores it for root.
    processes: int | None = 2048
    # Log lines are rows: what a person would read, and ten times more.
    output_bytes: int = 1 << 20
    # Events are results, which nobody may lose by accident.
    event_bytes: int = 16 << 20

    def rlimits(self) -> dict[str, int]:
        wanted = {
            "RLIMIT_CORE": 0,  # a core holds the document
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_FSIZE": self.file_size_bytes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_AS": self.address_space_bytes,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def times(self, grace_seconds: float) -> Times:
        wall_seconds = math.inf if self.wall_seconds is None else self.wall_seconds
        return {"wall_seconds": wall_seconds, "grace_seconds": grace_seconds}

    def pipes(self, on_output: OnOutput | None, on_event: OnEvent | None) -> Pipes:
        events = Events(self.event_bytes, on_event) if on_event is not None else None
        return Pipes(Output(self.output_bytes, on_output), events, {})


class Options(TypedDict, total=False):
    """What `run` hands to `spawn`."""

    cwd: Required[Path]
    env: Mapping[str, str] | None
    stdin: int | None
    limits: Limits
    grace_seconds: float
    on_output: OnOutput | None
    on_event: OnEvent | None
    pass_fds: Sequence[int]
    network: bool
    writable: Sequence[Path]
    readable: Sequence[Path]
    hidden: Sequence[Path]
    sandbox: Level | None
    trust_until: float


def run(
    argv: Sequence[str],
    *,
    stop: Callable[[], str | None] | None = None,
    on_start: Callable[[Child], None] | None = None,
    **options: Unpack[Options],
) -> Ended:
    """Until the child has ended. Raises CannotStart.

    `stop` is asked at least every 100 ms and ends the child by giving a reason. It and the callbacks run in
    this thread: a callback that takes long delays the look, but not the wall clock and `Child.trust_until`,
    which the keeper enforces. When one raises, the child is killed first.
    """
    with spawn(argv, **options) as child:
        if on_start is not None:
            on_start(child)
        return child.wait(stop)


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    limits: Limits | None = None,
    grace_seconds: float = GRACE_SECONDS,
    on_output: OnOutput | None = None,
    on_event: OnEvent | None = None,
    pass_fds: Sequence[int] = (),
    network: bool = False,
    writable: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    sandbox: Level | None = None,
    is_first: bool = False,
    trust_until: float = math.inf,
) -> Child:
    """Starts a child. Somebody must then call `wait`, or `poll` often enough that its pipes do not fill.

    `pass_fds` keep their numbers. `network`, `writable`, `readable` and `hidden` mean something in bubblewrap
    only: there the child sees the machine read-only and without network; not what is `hidden`, but in it what is
    `readable`, `writable` or `cwd`. With `is_first` the program is the first process of its sandbox, and has to
    reap what others leave to it. `trust_until` as in `Child.trust_until`: from that moment on it is not even
    started. Raises CannotStart, and ValueError for a secret in `env`.
    """
    directory, scratch, variables = place(cwd, env or {})
    limits = limits or Limits()
    program = _executable(argv, directory, variables["PATH"])
    command = [program, *argv[1:]]
    pipes = limits.pipes(on_output, on_event)
    with ExitStack() as ours, ExitStack() as theirs, explained(program, directory):
        wires = Wires(ours, theirs, pass_fds)
        connect(wires, pipes, variables, stdin=stdin)
        if (sandbox or sandbox_level()) == "bubblewrap":
            shown = (_absolute(writable), _absolute(readable), _absolute(hidden))
            walls = Walls(directory, scratch, network, *shown, is_first=is_first)
            number = wires.free_number()
            pipes.sandbox_report = wires.pipe(number)
            command = wrap(command, walls, status=number)
        times = limits.times(grace_seconds)
        order = {
            "argv": command,
            "env": variables,
            "cwd": directory,
            "limits": limits.rlimits(),
            "sandboxed": pipes.sandbox_report is not None,
            "trust_until": trust_until,
            "is_fork": False,
        }
        keeper, answer = launcher.start(order | times, wires)
        return Child(program, keeper, answer, pipes, ours.pop_all(), **times)


def connect(
    wires: Wires, pipes: Pipes, variables: dict[str, str], *, stdin: int | None = None, events_number: int | None = None
) -> None:
    wires.give(wires.open_null() if stdin is None else stdin, 0)
    pipes.feeds[wires.pipe(1)] = partial(pipes.output.feed, "stdout")
    pipes.feeds[wires.pipe(2)] = partial(pipes.output.feed, "stderr")
    if pipes.events:
        number = events_number or wires.free_number()
        pipes.feeds[wires.pipe(number)] = pipes.events.feed
        variables[EVENTS_VARIABLE] = str(number)


def place(cwd: Path, env: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """Where a child works, where it may put what lasts no longer than it, and its environment."""
    directory = _directory(cwd)
    scratch = _scratch(directory)
    return directory, scratch, environment(directory, scratch, env)


def _directory(cwd: Path) -> str:
    path = os.path.abspath(cwd)
    if not os.path.isdir(path):
        raise CannotStart(f"cannot start in {path}: expected a directory, found {_kind(path)}", errno.ENOENT)
    return path


def _scratch(directory: str) -> str:
    path = os.path.join(directory, SCRATCH)
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except OSError as error:
        raise CannotStart(
            f"cannot start in {directory}: expected to make {SCRATCH}, found {error}", error.errno
        ) from error
    if os.path.islink(path) or not os.path.isdir(path):
        raise CannotStart(f"cannot start in {directory}: expected {SCRATCH} to be a directory, found {_kind(path)}")
    return path


def _executable(argv: Sequence[str], directory: str, search_path: str) -> str:
    """Found here, with the child's PATH, because bubblewrap says too late that it found none."""
    if not argv or not argv[0]:
        raise CannotStart("cannot start: expected a program and its arguments, found none")
    name = argv[0]
    path = os.path.join(directory, name) if "/" in name else shutil.which(name, path=search_path)
    if path is None:
        raise CannotStart(f"cannot start {name}: expected a program on PATH {search_path}, found none", errno.ENOENT)
    if not os.path.isfile(path):
        raise CannotStart(f"cannot start {name}: expected a program, found {_kind(path)} at {path}", errno.ENOENT)
    if not os.access(path, os.X_OK):
        raise CannotStart(
            f"cannot start {name}: expected a program, found a file that may not be executed: {path}",
            errno.EACCES,
        )
    return path


def _kind(path: str) -> str:
    if os.path.islink(path):
        return "a symbolic link"
    return "nothing" if not os.path.exists(path) else "a directory" if os.path.isdir(path) else "a file"


def _absolute(paths: Sequence[Path]) -> list[str]:
    found = [os.path.abspath(path) for path in paths]
    for path in found:
        if not os.path.exists(path):
            raise CannotStart(
                f"cannot start: expected {path} to exist, to show or to hide it, found nothing", errno.ENOENT
            )
    return found


_EXPLAINED = {
    errno.ENOENT: "its loader, or the interpreter in its #! line, does not exist",
    errno.ENOEXEC: "it is neither a program of this machine nor a script with a #! line",
    errno.EACCES: "it may not be executed there",
    errno.E2BIG: "its arguments and environment are too long",
    errno.EAGAIN: "the limit of processes, of this user or of the machine, is reached",
    errno.EMFILE: "this process has too many open files",
    errno.ENOMEM: "memory has run out",
}


@contextmanager
def explained(program: str, directory: str) -> Iterator[None]:
    try:
        yield
    except (launcher.Refused, OSError) as error:
        step = f" ({error.step})" if isinstance(error, launcher.Refused) else ""
        reason = _EXPLAINED.get(error.errno or 0, "")
        message = f"cannot start {program} in {directory}: expected it to run, found {error}{step}"
        raise CannotStart(f"{message}: {reason}" if reason else message, error.errno) from error


_LOOK_AROUND = "import os; print(os.getpid(), os.readlink('/proc/self/ns/net'), os.access('/', os.W_OK))"


@cache
def sandbox_level() -> Level:
    """What stands around children on this machine. Tried once: some hosts have bubblewrap and forbid it."""
    if bubblewrap() is None:
        return "limits"
    seen: list[Line] = []
    try:
        with tempfile.TemporaryDirectory() as directory:
            look = [sys.executable, "-I", "-S", "-c", _LOOK_AROUND]
            ended = run(
                look,
                cwd=directory,
                limits=Limits(wall_seconds=10),
                on_output=seen.extend,
                sandbox="bubblewrap",
            )
    except CannotStart as error:
        logger.warning("bubblewrap is installed but does not work here, children get limits only: %s", error)
        return "limits"
    found = " ".join(line.text for line in seen)
    pid, network, writable = [*found.split(), "", "", ""][:3]
    walled = len(pid) == 1 and network.startswith("net:") and network != os.readlink("/proc/self/ns/net")
    if ended.returncode == 0 and walled and writable == "False":
        return "bubblewrap"
    logger.warning("bubblewrap runs but does not wall off, children get limits only: %s, found %s", ended, found)
    return "limits"
