"""Makes environments: locks the requirements, installs them, adds the engine and the configuration, and looks whether
its entry point can be imported. Nothing of it is there for others until all of it is.
"""

import math
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
from builds import environments, fingerprint, uv
from builds.environments import Staging
from builds.fingerprint import Snapshot
from work import private, supervise
from work.claims import Interrupted
from work.supervise import Child, Ended, Limits, Line

# A resolver and an unpacker, for wheels of some GB; they are ours, not the configuration's.
UV_LIMITS = Limits(cpu_seconds=None, address_space_bytes=None, file_size_bytes=8 << 30, open_files=8192)
# An import that takes longer than this would take it from every run.
CHECK_SECONDS = 60.0
# Whatever tells us of them runs beside the code of the configuration, which may tell us anything.
LONGEST_MESSAGE = 2000
LONGEST_NAME = 100
MOST_STEPS = 1000
# What is kept of the output of one program, to say why it failed.
SAID_LINES = 30


class BuildFailed(Exception):
    """Says in words for people what was expected and what was found."""

    def __init__(self, failure_type: str, message: str) -> None:
        super().__init__(message)
        self.failure_type = failure_type


@dataclass
class Watch:
    """How the programs of one build are watched: by whom they are stopped, recorded and listened to."""

    # Of time.monotonic().
    until: float
    # How that time is called in a message.
    time: str = "the time for it"
    stop: Callable[[], str | None] = lambda: None
    on_start: Callable[[Child], None] = lambda child: None
    say: Callable[[list[Line]], None] = lambda lines: None
    said: list[str] = field(default_factory=list)

    def run(self, what: str, argv: list[str], cwd: Path, limits: Limits, **options: Any) -> Ended:
        """Raises Interrupted when it was stopped, and BuildFailed when time is over."""
        self.said = []
        left = max(self.until - time.monotonic(), 0.1)
        own = limits.wall_seconds or math.inf
        ended = supervise.run(
            argv,
            cwd=cwd,
            limits=replace(limits, wall_seconds=min(left, own)),
            stop=self.stop,
            on_start=self.on_start,
            on_output=self._hear,
            hidden=private.places(),
            **options,
        )
        if ended.stop_reason:
            raise Interrupted(ended.stop_reason)
        if ended.reason == "timed_out":
            when = f"within {own:g} s" if own < left else f"when {self.time} was over"
            raise BuildFailed("TIMED_OUT", f"{what}: not done {when}")
        return ended

    def _hear(self, lines: list[Line]) -> None:
        self.said = [*self.said, *(line.text for line in lines)][-SAID_LINES:]
        self.say(lines)

    def tell(self, text: str) -> None:
        self.say([Line("build", text)])


@dataclass(frozen=True)
class Made:
    lock: str
    size_bytes: int
    steps: list[str]


def make(snapshot: Snapshot, wanted: str, watch: Watch, lock: str | None = None) -> Made:
    """The environment of this fingerprint, on this host. With a lock, exactly what that says is installed."""
    if fingerprint.of_build(fingerprint.of_contents(snapshot)) != wanted:
        raise BuildFailed(
            "OTHER_ENGINE",
            f"this worker has engine {fingerprint.ENGINE_VERSION} on {fingerprint.PLATFORM} with Python"
            f" {fingerprint.PYTHON_VERSION}, and the build was asked for from another one; restart what"
            " is older, then run again",
        )
    with environments.staging(wanted) as staged:
        made = _make(snapshot, staged, watch, lock)
        environments.publish(staged, environments.name_of(wanted, made.lock))
    return made


@contextmanager
def made_for_once(snapshot: Snapshot, watch: Watch) -> Iterator[tuple[Path, Made]]:
    """An environment that nobody else sees, and that is gone afterwards."""
    with environments.staging(fingerprint.of_contents(snapshot)) as staged:
        yield staged.home, _make(snapshot, staged, watch, None)


def resolve(snapshot: Snapshot, work: Path, watch: Watch) -> str:
    """The lock of these requirements; empty when there are none."""
    if not has_requirements(snapshot["requirements"]):
        return ""
    wanted, lock = work / "requirements.txt", work / "lock.txt"
    wanted.write_text(snapshot["requirements"], "utf-8")
    watch.tell("locking the requirements")
    command = partial(uv.compile_lock, _python(snapshot), wanted, lock)
    _with_or_without_network("the requirements cannot be met", command, work, watch)
    return lock.read_text("utf-8")


def _make(snapshot: Snapshot, staged: Staging, watch: Watch, lock: str | None) -> Made:
    started = time.monotonic()
    wanted = fingerprint.of_build(fingerprint.of_contents(snapshot))
    lock = _install(snapshot, staged, watch, lock)
    told = {"fingerprint": wanted, "entry_point": snapshot["entry_point"]}
    environments.write_marker(staged.home, **told)
    _compile(staged, environments.path_of(environments.name_of(wanted, lock)), watch)
    steps = _check(staged, watch)
    size = environments.size_of(staged.home)
    environments.write_marker(staged.home, **told, size_bytes=size)
    watch.tell(f"ready in {time.monotonic() - started:.1f} s: {size / 2**20:.1f} MB, steps {', '.join(steps)}")
    return Made(lock, size, steps)


def has_requirements(text: str) -> bool:
    return any(line.partition("#")[0].strip() for line in text.splitlines())


def _install(snapshot: Snapshot, staged: Staging, watch: Watch, lock: str | None) -> str:
    uv.cache().mkdir(mode=0o700, parents=True, exist_ok=True)
    watch.tell("making the environment")
    make_environment = uv.make_environment(_python(snapshot), staged.home)
    _uv("the environment cannot be made", make_environment, staged.work, watch)
    # Looked for before packages are there, which may bring folders of that name.
    (packages,) = staged.home.glob("lib/python*/site-packages")
    if lock is None:
        lock = resolve(snapshot, staged.work, watch)
    if lock:
        path = staged.work / "lock.txt"
        path.write_text(lock, "utf-8")
        watch.tell("installing")
        command = partial(uv.install, staged.home, path)
        _with_or_without_network("the packages cannot be installed", command, staged.work, watch)
    try:
        _add_engine(packages)
        environments.write_configuration(staged.home, snapshot["files"])
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        message = f"a package has files in the place of the engine's or of the configuration's: {error}"
        raise BuildFailed("BUILD_FAILED", message) from error
    return lock


def _with_or_without_network(trouble: str, command: Callable[..., list[str]], cwd: Path, watch: Watch) -> None:
    if settings.ADE_BUILD_OFFLINE:
        return _uv(trouble, command(offline=True), cwd, watch)
    try:
        return _uv(trouble, command(offline=False), cwd, watch)
    except BuildFailed as failed:
        if not uv.lacks_network(str(failed)):
            raise
        watch.tell("the index cannot be reached: trying with what is in the cache")
        try:
            return _uv(trouble, command(offline=True), cwd, watch)
        except BuildFailed as again:
            raise failed from again


def _uv(trouble: str, argv: list[str], cwd: Path, watch: Watch) -> None:
    ended = watch.run(trouble, argv, cwd, UV_LIMITS, env=uv.variables(), network=True, writable=uv.writable())
    if ended.returncode != 0:
        raise BuildFailed("BUILD_FAILED", f"{trouble}: {_reason(ended, watch)}")


def _compile(staged: Staging, destination: Path, watch: Watch) -> None:
    """To bytecode, with the paths as they will be: what runs cannot write it, and tracebacks show them."""
    folders = [str(path) for path in (staged.home / "lib", staged.home / environments.CONFIGURATION)]
    argv = [environments.python_of(staged.home), "-I", "-m", "compileall", "-q", "-s", str(staged.home)]
    # A file that does not compile is told by the import, if it is ever imported: some packages ship such.
    watch.run("compiling", [*argv, "-p", str(destination), *folders], staged.work, UV_LIMITS, writable=[staged.home])


def _check(staged: Staging, watch: Watch) -> list[str]:
    watch.tell("importing the entry point")
    argv = [environments.python_of(staged.home), "-I", "-X", "utf8", "-m", "ade_engine", "check"]
    limits = Limits(wall_seconds=CHECK_SECONDS)
    told: dict[str, Any] = {}
    ended = watch.run(
        "importing the entry point",
        argv,
        staged.work,
        limits,
        readable=[staged.home],
        on_event=told.update,
    )
    if ended.returncode != 0 or not told.get("steps"):
        reason = str(told.get("error") or _reason(ended, watch))
        raise BuildFailed("CHECK_FAILED", f"the entry point cannot be imported: {reason[:LONGEST_MESSAGE]}")
    return [str(name)[:LONGEST_NAME] for name in list(told["steps"])[:MOST_STEPS]]


def _reason(ended: Ended, watch: Watch) -> str:
    said = " ".join(line.strip() for line in watch.said if line.strip())
    return said[-1500:] if said else str(ended)


def _add_engine(packages: Path) -> None:
    for package in (ade_engine, ade_keeper):
        source = Path(package.__path__[0])
        shutil.copytree(source, packages / source.name, ignore=shutil.ignore_patterns("__pycache__"))


def _python(snapshot: Snapshot) -> str:
    wanted = snapshot["python_version"]
    return sys.executable if wanted in ("", fingerprint.PYTHON_VERSION) else wanted
