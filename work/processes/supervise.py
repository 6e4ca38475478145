"""Runs the programs of configurations, and other child processes. Each has its own session, limits and captured output.

`run` starts a child and waits for it. `spawn` returns a `Child`, for callers that wait for more than one thing. A
worker's threads never fork: the spawner in `work/processes/spawner.py` forks the process guard, which starts and kills
the child.
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

from work.processes import groups, seccomp, spawner_client
from work.processes.child import CannotStart, Child, Ended, Pipes
from work.processes.identity import ProcessId, end_recorded
from work.processes.output import Events, Line, Output
from work.processes.sandbox import SandboxPaths, bubblewrap, environment, wrap
from work.processes.spawner_client import Wires
from work.processes.usage import Most, Usage

__all__ = [
    "NO_SANDBOX", "CannotStart", "Child", "Ended", "Level", "Limits", "Line", "Options", "ProcessId", "end_recorded",
    "level", "run", "sandbox_level", "spawn",
]  # fmt: skip

Level = Literal["bubblewrap", "limits"]
Policy = Literal["required", "preferred", "off"]
OnOutput = Callable[[list[Line]], None]
OnEvent = Callable[[dict[str, Any]], None]
Path = str | os.PathLike[str]

# The time between SIGTERM and SIGKILL. It is enough to flush a file, but not to finish the work.
GRACE_SECONDS = 5.0
# The folder for temporary files. It is inside the child's directory, but does not count as one of its results.
SCRATCH = ".tmp"
# The environment variable that holds the number of the descriptor for events.
EVENTS_VARIABLE = "ADE_EVENTS_FD"

logger = logging.getLogger(__name__)
# The setting ADE_SANDBOX; `work/apps.py` sets it.
policy: Policy = "preferred"


class Times(TypedDict):
    wall_seconds: float
    grace_seconds: float


@dataclass(frozen=True)
class Limits:
    """Limits of one child. None means no limit.

    The kernel applies the limits of address space, CPU time and open files to each process. The limits of memory, tasks
    and disk apply to the child and all its descendants together. The wall-clock limit ends them all.
    """

    # The default is for runs. Builds and extractions set their own limit.
    wall_seconds: float | None = 120.0
    # Twice the wall-clock limit, which two threads can use if they are always busy. More busy threads reach this limit
    # before the wall-clock limit.
    cpu_seconds: int | None = 240
    # Address space is not memory: numeric libraries reserve some GB for their threads and use a tenth of it.
    address_space_bytes: int | None = 4 << 30
    # Large enough for the largest artifact. Stops a file that grows forever.
    file_size_bytes: int | None = 512 << 20
    # select() cannot handle more, and this is plenty for one document.
    open_files: int | None = 1024
    # The kernel counts all threads of this *user*, including those of the worker and of other children. So the limit is
    # far above what these need, and far below what would stop the machine. The kernel does not apply it to root.
    processes: int | None = 2048
    # These three are totals over the child and all its descendants, measured twice a second.
    memory_bytes: int | None = 4 << 30
    tasks: int | None = 512
    disk_bytes: int | None = 4 << 30
    # Each log line becomes a row. This is ten times more output than a person would read.
    output_bytes: int = 1 << 20
    # Events are results and must not be cut off by accident.
    event_bytes: int = 16 << 20

    def rlimits(self) -> dict[str, int]:
        limits = {
            "RLIMIT_CORE": 0,  # a core dump contains the document
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_FSIZE": self.file_size_bytes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_AS": self.address_space_bytes,
        }
        return {name: value for name, value in limits.items() if value is not None}

    def most(self) -> Most:
        return Most(self.memory_bytes, self.tasks, self.disk_bytes)

    def times(self, grace_seconds: float) -> Times:
        wall_seconds = math.inf if self.wall_seconds is None else self.wall_seconds
        return {"wall_seconds": wall_seconds, "grace_seconds": grace_seconds}

    def pipes(self, on_output: OnOutput | None, on_event: OnEvent | None) -> Pipes:
        events = Events(self.event_bytes, on_event) if on_event is not None else None
        return Pipes(Output(self.output_bytes, on_output), events, {})


class Options(TypedDict, total=False):
    """The options that `run` passes on to `spawn`, which explains them."""

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
    """Run a child and return when it has ended. Raise CannotStart if it cannot be started.

    `stop` is called at least every 100 ms; if it returns a reason, the child is ended. `stop` and the callbacks run in
    this thread. So a slow callback delays the next call of `stop`, but not the wall-clock limit and
    `Child.trust_until`, which the guard enforces. If `stop` or a callback raises an error, the child is killed first.
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
    """Start a child. The caller must then call `wait`, or `poll` often enough that the pipes do not fill.

    The descriptors in `pass_fds` keep their numbers. `network`, `writable`, `readable` and `hidden` take effect only in
    bubblewrap. There the child can read the programs and libraries of the system, its own installation and the
    `readable` paths, and can write to the `writable` paths and `cwd`. With `network`, which is for ADE's own programs,
    it sees the whole machine except the `hidden` paths. With `is_first`, the program is the first process of its
    sandbox and must reap orphans. After `trust_until` (see `Child.trust_until`) the child is not even started. Raises
    CannotStart, and ValueError if `env` contains a secret.
    """
    directory, scratch, variables = place(cwd, env or {})
    limits = limits or Limits()
    program = _executable(argv, directory, variables["PATH"])
    command = [program, *argv[1:]]
    pipes = limits.pipes(on_output, on_event)
    with ExitStack() as ours, ExitStack() as theirs, explain_failure(program, directory):
        written = _absolute(writable)  # before the start, because it raises if a path is missing
        wires = Wires(ours, theirs, pass_fds)
        connect(wires, pipes, variables, stdin=stdin)
        if (sandbox or level()) == "bubblewrap":
            shown = (written, _absolute(readable), _absolute(hidden))
            paths = SandboxPaths(program, directory, scratch, network, *shown, is_first=is_first)
            number = wires.free_number()
            pipes.sandbox_report = wires.pipe(number)
            command = wrap(command, paths, status=number, seccomp=_give_filter(wires))
        times = limits.times(grace_seconds)
        is_sandboxed = pipes.sandbox_report is not None
        order = {
            "argv": command,
            "env": variables,
            "cwd": directory,
            "limits": limits.rlimits(),
            "sandboxed": is_sandboxed,
            "trust_until": trust_until,
            "is_fork": False,
            "group": groups.order(limits.tasks),
        }
        guard, answer = spawner_client.start(order | times, wires)
        # All processes below the guard are the child's: the guard has one child at a time and adopts its orphans.
        measured = (guard.pid, [directory, *written], limits.most())
        usage = Usage(*measured, walled_off=is_sandboxed, own_network=is_sandboxed and not network)
        return Child(program, guard, answer, pipes, ours.pop_all(), usage=usage, **times)


def _give_filter(wires: Wires) -> int | None:
    """Pass the seccomp filter to bubblewrap. Return the number of its descriptor, or None if there is no filter."""
    if (program := seccomp.program()) is None:
        return None
    reading, writing = os.pipe()
    wires.theirs.callback(os.close, reading)
    with open(writing, "wb") as file:
        file.write(program)
    number = wires.free_number()
    wires.give(reading, number)
    return number


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
    """Return the child's working directory, its folder for temporary files, and its environment."""
    directory = os.path.abspath(cwd)
    if not os.path.isdir(directory):
        raise CannotStart(f"Cannot start in {directory}: it must be a directory, but {_kind(directory)}.", errno.ENOENT)
    scratch = os.path.join(directory, SCRATCH)
    try:
        with suppress(FileExistsError):
            os.mkdir(scratch, 0o700)
    except OSError as error:
        raise CannotStart(f"Cannot start in {directory}: {SCRATCH} could not be made: {error}", error.errno) from error
    if os.path.islink(scratch) or not os.path.isdir(scratch):
        raise CannotStart(f"Cannot start in {directory}: {SCRATCH} must be a directory, but {_kind(scratch)}.")
    return directory, scratch, environment(directory, scratch, env)


def _executable(argv: Sequence[str], directory: str, search_path: str) -> str:
    """Return the path of the program, looked up on the child's PATH.

    Check it here, because bubblewrap would report a missing program too late.
    """
    if not argv or not argv[0]:
        raise CannotStart("Cannot start: no program was given.")
    name = argv[0]
    path = os.path.join(directory, name) if "/" in name else shutil.which(name, path=search_path)
    if path is None:
        raise CannotStart(f"Cannot start {name}: there is no such program on PATH {search_path}.", errno.ENOENT)
    if not os.path.isfile(path):
        raise CannotStart(f"Cannot start {name}: {path} must be a program, but {_kind(path)}.", errno.ENOENT)
    if not os.access(path, os.X_OK):
        raise CannotStart(f"Cannot start {name}: {path} is not executable.", errno.EACCES)
    return path


def _kind(path: str) -> str:
    if os.path.islink(path):
        return "it is a symbolic link"
    if not os.path.exists(path):
        return "it does not exist"
    return "it is a directory" if os.path.isdir(path) else "it is a file"


def _absolute(paths: Sequence[Path]) -> list[str]:
    absolute = [os.path.abspath(path) for path in paths]
    for path in absolute:
        if not os.path.exists(path):
            raise CannotStart(f"Cannot start: {path}, which should be shown or hidden, does not exist.", errno.ENOENT)
    return absolute


_REASONS = {
    errno.ENOENT: "its loader, or the interpreter in its #! line, does not exist",
    errno.ENOEXEC: "it is neither a program for this machine nor a script with a #! line",
    errno.EACCES: "it cannot be executed there",
    errno.E2BIG: "its arguments and environment are too long",
    errno.EAGAIN: "the process limit of this user or machine is reached",
    errno.EMFILE: "this process has too many open files",
    errno.ENOMEM: "memory has run out",
}


@contextmanager
def explain_failure(program: str, directory: str) -> Iterator[None]:
    try:
        yield
    except (spawner_client.Refused, OSError) as error:
        step = f" ({error.step})" if isinstance(error, spawner_client.Refused) else ""
        reason = _REASONS.get(error.errno or 0, "")
        message = f"Cannot start {program} in {directory}: {error}{step}"
        raise CannotStart(f"{message}: {reason}" if reason else message, error.errno) from error


NO_SANDBOX = (
    "ADE_SANDBOX=required, but bubblewrap is not installed or does not work here. Install it (`bwrap`) and allow it to"
    " create user namespaces, or set ADE_SANDBOX=preferred and run only configurations that you trust."
)


def level() -> Level:
    """Return the isolation that children get. Raise CannotStart if ADE_SANDBOX requires more."""
    if policy == "off":
        return "limits"
    possible = sandbox_level()
    if possible == "limits" and policy == "required":
        raise CannotStart(NO_SANDBOX)
    return possible


_LOOK_AROUND = "import os; print(os.getpid(), os.readlink('/proc/self/ns/net'), os.access('/', os.W_OK))"


@cache
def sandbox_level() -> Level:
    """Return the isolation that works on this machine. Try it once per process, because some machines have bubblewrap
    but forbid it.
    """
    if bubblewrap() is None:
        return "limits"
    lines: list[Line] = []
    try:
        with tempfile.TemporaryDirectory() as directory:
            look = [sys.executable, "-I", "-S", "-c", _LOOK_AROUND]
            limits = Limits(wall_seconds=10)
            ended = run(look, cwd=directory, limits=limits, on_output=lines.extend, sandbox="bubblewrap")
    except CannotStart as error:
        logger.warning("bubblewrap is installed but does not work here; child processes only get limits: %s", error)
        return "limits"
    output = " ".join(line.text for line in lines)
    pid, network, writable = [*output.split(), "", "", ""][:3]
    is_isolated = len(pid) == 1 and network.startswith("net:") and network != os.readlink("/proc/self/ns/net")
    if ended.returncode == 0 and is_isolated and writable == "False":
        return "bubblewrap"
    message = "bubblewrap runs but does not isolate; child processes only get limits: %s, output: %s"
    logger.warning(message, ended, output)
    return "limits"
