"""Makes environments.

It locks the requirements, installs the packages, compares their files with their RECORDs, and adds the engine and the
configuration. Then it seals the files and checks that the entry point can be imported. An environment becomes visible
only when it is complete.

Packages may be hostile. None of their code runs before the import of the entry point, which happens in a sandbox that
cannot write to the environment. So programs that can write to the environment (uv, the compiler) never run with its own
Python once it has packages, because that would execute the packages' `.pth` files.
"""

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

import ade_engine
import ade_keeper
from builds import environments, fingerprint, integrity, uv
from builds.environments import Staging
from builds.fingerprint import Snapshot
from builds.integrity import Seal
from work.claims import Interrupted
from work.processes import hidden_paths, supervise
from work.processes.supervise import Child, Ended, Limits, Line

# uv needs high limits, because it resolves requirements and unpacks wheels of some GB. It is one of ADE's own programs,
# not of the configuration's.
UV_LIMITS = Limits(
    cpu_seconds=None,
    address_space_bytes=None,
    file_size_bytes=8 << 30,
    open_files=8192,
    # uv starts some threads per core.
    tasks=2048,
    # All builds share one cache folder, which is too large to be measured twice a second.
    disk_bytes=None,
)
# The compiler is Python's own, but it can need GB of memory for a source file of some MB.
COMPILE_LIMITS = replace(UV_LIMITS, tasks=512)
# Time limit for importing the entry point. A slower import would cost every run this time.
CHECK_SECONDS = 60.0
# Limits for a report. The process that sends it also runs the configuration's code, which may report anything.
LONGEST_MESSAGE = 2000
LONGEST_NAME = 100
MOST_STEPS = 1000
# How many of the last lines of a program's output to keep, to explain a failure.
LAST_LINES = 30


class BuildFailed(Exception):
    """The message says what happened and why."""

    def __init__(self, failure_type: str, message: str) -> None:
        super().__init__(message)
        self.failure_type = failure_type


@dataclass
class Watch:
    """Runs the programs of one build, and passes on their processes and output. Stops them at the time limit."""

    # The end of the build's time limit, as a value of time.monotonic().
    until: float
    # The words for that time limit in a message.
    time: str = "the time limit"
    stop: Callable[[], str | None] = lambda: None
    on_start: Callable[[Child], None] = lambda child: None
    say: Callable[[list[Line]], None] = lambda lines: None
    last_lines: list[str] = field(default_factory=list)

    def run(self, what: str, argv: list[str], cwd: Path, limits: Limits, **options: Any) -> Ended:
        """Run a program. Raise Interrupted if it was stopped, and BuildFailed if the time is up."""
        self.last_lines = []
        left = max(self.until - time.monotonic(), 0.1)
        own = limits.wall_seconds or math.inf
        ended = supervise.run(
            argv,
            cwd=cwd,
            limits=replace(limits, wall_seconds=min(left, own)),
            stop=self.stop,
            on_start=self.on_start,
            on_output=self._take_lines,
            hidden=hidden_paths.places(),
            **options,
        )
        if ended.stop_reason:
            raise Interrupted(ended.stop_reason)
        if ended.reason == "timed_out":
            when = f"{own:g} s" if own < left else self.time
            raise BuildFailed("TIMED_OUT", f"{what}: not finished within {when}")
        return ended

    def _take_lines(self, lines: list[Line]) -> None:
        self.last_lines = [*self.last_lines, *(line.text for line in lines)][-LAST_LINES:]
        self.say(lines)

    def log(self, text: str) -> None:
        self.say([Line("build", text)])


@dataclass(frozen=True)
class BuildResult:
    lock: str
    size_bytes: int
    steps: list[str]


def make(snapshot: Snapshot, wanted: str, watch: Watch, lock: str | None = None) -> BuildResult:
    """Make the environment of this fingerprint on this host. If a lock is given, install exactly its packages."""
    if fingerprint.of_build(fingerprint.of_contents(snapshot)) != wanted:
        raise BuildFailed(
            "OTHER_ENGINE",
            f"This worker has engine {fingerprint.ENGINE_VERSION} on {fingerprint.PLATFORM} with Python"
            f" {fingerprint.PYTHON_VERSION}, but the build was requested with another one. Restart the older"
            " processes, then run again.",
        )
    with environments.staging(wanted) as staged:
        result = _make(snapshot, staged, watch, lock)
        environments.publish(staged, environments.name_of(wanted, result.lock))
    return result


@contextmanager
def temporary_environment(snapshot: Snapshot, watch: Watch) -> Iterator[tuple[Path, BuildResult]]:
    """Make and yield an environment that is never published. Remove it afterwards."""
    with environments.staging(fingerprint.of_contents(snapshot)) as staged:
        yield staged.home, _make(snapshot, staged, watch, None)


def resolve(snapshot: Snapshot, work: Path, watch: Watch) -> str:
    """Return the lock of the requirements, or an empty string if there are none."""
    if not has_requirements(snapshot["requirements"]):
        return ""
    requirements, lock = work / "requirements.txt", work / "lock.txt"
    requirements.write_text(snapshot["requirements"], "utf-8")
    watch.log("locking the requirements")

    def compile_lock(*, offline: bool) -> None:
        command = uv.compile_lock(_python(snapshot), requirements, lock, offline=offline)
        _uv("The requirements cannot be met", command, work, watch)

    _with_or_without_network(compile_lock, watch)
    return lock.read_text("utf-8")


def _make(snapshot: Snapshot, staged: Staging, watch: Watch, lock: str | None) -> BuildResult:
    started = time.monotonic()
    build_fingerprint = fingerprint.of_build(fingerprint.of_contents(snapshot))
    watch.log("making the environment")
    empty = _make_empty(snapshot, staged, watch)
    if lock is None:
        lock = resolve(snapshot, staged.work, watch)
    if lock:
        _install(snapshot, staged, empty, lock, watch)
    try:
        for package in (ade_engine, ade_keeper):
            source = Path(package.__path__[0])
            shutil.copytree(source, empty.packages / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        environments.write_configuration(staged.home, snapshot["files"])
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        message = f"A package has a file at a path of the engine or of the configuration: {error}"
        raise BuildFailed("BUILD_FAILED", message) from error

    # Compile to bytecode, because runs cannot write any. Tracebacks will show the final paths.
    destination = environments.path_of(environments.name_of(build_fingerprint, lock))
    folders = [str(path) for path in (staged.home / "lib", staged.home / environments.CONFIGURATION)]
    argv = [empty.python, "-I", "-S", "-m", "compileall", "-f", "-q", "-s", str(staged.home), "-p", str(destination)]
    # Ignore errors: some packages ship files that do not compile. If such a file is imported, the import reports it.
    ended = watch.run("Compiling", [*argv, *folders], staged.work, COMPILE_LIMITS, writable=[staged.home])
    if ended.over_limit:
        raise BuildFailed("BUILD_FAILED", f"Compiling exceeded its limit of {ended.over_limit}")

    marker = {"fingerprint": build_fingerprint, "entry_point": snapshot["entry_point"]}
    environments.write_marker(staged.home, **marker)
    size = environments.size_of(staged.home)
    environments.write_marker(staged.home, **marker, size_bytes=size)
    seal = environments.seal(staged)
    steps = _check(staged, watch)
    if changes := integrity.compare(staged.home, seal):
        message = f"Importing the entry point changed the environment, which must stay unchanged: {changes}"
        raise BuildFailed("CHECK_FAILED", message)
    watch.log(f"ready in {time.monotonic() - started:.1f} s: {size / 2**20:.1f} MB, steps {', '.join(steps)}")
    return BuildResult(lock, size, steps)


def has_requirements(text: str) -> bool:
    return any(line.partition("#")[0].strip() for line in text.splitlines())


@dataclass(frozen=True)
class _Empty:
    """An environment as it is before packages are installed.

    These values are recorded at that time, because packages may bring a Python and folders of the same names.
    """

    # The interpreter outside the environment to which the environment's link leads. Run through the link, it would also
    # run code of the packages.
    python: str
    packages: Path
    files: Seal


def _make_empty(snapshot: Snapshot, staged: Staging, watch: Watch) -> _Empty:
    command = uv.make_environment(_python(snapshot), staged.home)
    _uv("The environment cannot be made", command, staged.work, watch, staged.root)
    (packages,) = staged.home.glob("lib/python*/site-packages")
    python = os.path.realpath(environments.python_of(staged.home))
    return _Empty(python, packages, integrity.make_seal(staged.home))


def _install(snapshot: Snapshot, staged: Staging, empty: _Empty, lock: str, watch: Watch) -> None:
    path = staged.work / "lock.txt"
    path.write_text(lock, "utf-8")
    watch.log("installing")

    def install(*, offline: bool, cached: bool = True) -> None:
        if integrity.compare(staged.home, empty.files):
            # A failed attempt left packages behind. uv starts the environment's Python, which would run their code.
            environments.erase(staged.home)
            _make_empty(snapshot, staged, watch)
        command = uv.install(staged.home, path, offline=offline, cached=cached)
        _uv("The packages cannot be installed", command, staged.work, watch, staged.root)

    _with_or_without_network(install, watch)
    problems = _problems_of_packages(staged.home, empty)
    if problems and not settings.ADE_BUILD_OFFLINE:
        watch.log(f"{integrity.in_short(problems)}: installing without the cache, which may have been modified")
        _with_or_without_network(partial(install, cached=False), watch)
        problems = _problems_of_packages(staged.home, empty)
    if problems:
        message = f"The installed files do not match the RECORD of their packages: {integrity.in_short(problems)}"
        raise BuildFailed("BUILD_FAILED", message)


def _problems_of_packages(home: Path, empty: _Empty) -> list[str]:
    # Remove uv's lock file, because every user may write to it.
    (home / ".lock").unlink(missing_ok=True)
    for folder in [path for path in home.rglob(integrity.BYTECODE) if path.is_dir() and not path.is_symlink()]:
        # Remove bytecode, because a package can ship some for another package's sources. It is compiled again later.
        shutil.rmtree(folder, ignore_errors=True)
    changes = integrity.compare(home, empty.files)
    replaced = [f"{path} of the environment was replaced" for path in [*changes.missing, *changes.changed]]
    return [*integrity.check_packages(home, empty.packages, empty.files), *replaced]


def _with_or_without_network(attempt: Callable[..., None], watch: Watch) -> None:
    if settings.ADE_BUILD_OFFLINE:
        return attempt(offline=True)
    try:
        return attempt(offline=False)
    except BuildFailed as failed:
        if not uv.lacks_network(str(failed)):
            raise
        watch.log("the package index is unreachable: trying the cached packages")
        try:
            return attempt(offline=True)
        except BuildFailed as again:
            raise failed from again


def _uv(trouble: str, argv: list[str], cwd: Path, watch: Watch, *writable: Path) -> None:
    uv.cache().mkdir(mode=0o700, parents=True, exist_ok=True)
    places = [*writable, uv.cache()]
    ended = watch.run(trouble, argv, cwd, UV_LIMITS, env=uv.variables(), network=True, writable=places)
    if ended.returncode != 0:
        raise BuildFailed("BUILD_FAILED", f"{trouble}: {_reason(ended, watch)}")


def _check(staged: Staging, watch: Watch) -> list[str]:
    """Import the entry point in the sandbox. Return the names of its steps."""
    watch.log("importing the entry point")
    argv = [environments.python_of(staged.home), "-I", "-X", "utf8", "-m", "ade_engine", "check"]
    limits = Limits(wall_seconds=CHECK_SECONDS)
    report: dict[str, Any] = {}
    ended = watch.run(
        "Importing the entry point", argv, staged.work, limits, readable=[staged.home], on_event=report.update
    )
    if ended.returncode != 0 or not report.get("steps"):
        reason = str(report.get("error") or _reason(ended, watch))
        raise BuildFailed("CHECK_FAILED", f"The entry point cannot be imported: {reason[:LONGEST_MESSAGE]}")
    return [str(name)[:LONGEST_NAME] for name in list(report["steps"])[:MOST_STEPS]]


def _reason(ended: Ended, watch: Watch) -> str:
    if ended.over_limit:
        return str(ended)
    output = " ".join(line.strip() for line in watch.last_lines if line.strip())
    return output[-1500:] if output else str(ended)


def _python(snapshot: Snapshot) -> str:
    version = snapshot["python_version"]
    return sys.executable if version in ("", fingerprint.PYTHON_VERSION) else version
