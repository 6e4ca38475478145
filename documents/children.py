"""Runs the programs that read documents and embed texts, in limited child processes.

Each worker keeps one warm process per program and worker thread, and forks a fresh process from it for each piece of
work. Where that is not possible, the program starts cold. Apps that build on this one run their programs the same way.
"""

import atexit
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, NamedTuple, NotRequired, Protocol, TypedDict, Unpack
from uuid import uuid4

import structlog
from django.conf import settings

import ade_embedder
import ade_engine
import ade_extractor
import ade_keeper
import ade_understanding
from work.processes import hidden_paths, supervise
from work.processes.fork_server import ForkServer
from work.processes.scratch import remove, workplace
from work.processes.supervise import CannotStart, Child, Ended, Limits, OnEvent, OnOutput
from work.processes.warm import Pool, Started, Warm

EXTRACTOR, EMBEDDER = "extractor", "embedder"
# The PROGRAM of each package is the code that starts it.
_PACKAGES: dict[str, ModuleType] = {EXTRACTOR: ade_extractor, EMBEDDER: ade_embedder}
# Limit libraries to one thread per process. Several programs run at once, one for each worker thread, and would compete
# if each started one thread per core.
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}

log = structlog.get_logger(__name__)


class Options(TypedDict):
    """The keyword arguments of `supervise.run`."""

    cwd: Path
    limits: Limits
    stop: Callable[[], str | None]
    on_start: Callable[[Child], None]
    on_event: OnEvent
    on_output: OnOutput
    # What the program may read besides its working directory. A warm program cannot read these paths.
    readable: NotRequired[Sequence[Path]]


class Run(Protocol):
    """Runs a program. Returns how it ended, or None if it has finished this work and waits for more.

    Raises CannotStart.
    """

    def __call__(self, arguments: Sequence[str], **options: Unpack[Options]) -> Ended | None: ...


class ProgramDirectory(NamedTuple):
    """The directory for the input and output of one piece of work, and the function that runs the program there."""

    directory: Path
    run: Run


def register(program: str, package: ModuleType) -> str:
    """Add a program and return its name for `program_directory`. Its package must define PROGRAM, as in _PACKAGES."""
    _PACKAGES[program] = package
    return program


def root() -> Path:
    return Path(settings.VAR_DIR, "extraction")


def cold(program: str, arguments: Sequence[str], **options: Unpack[Options]) -> Ended:
    options["readable"] = [*_code(), *options.get("readable", ())]
    return supervise.run([*_command(program), *arguments], env=VARIABLES, hidden=hidden_paths.places(), **options)


@contextmanager
def program_directory(
    program: str, stop: Callable[[], str | None], *, is_warm: bool = True
) -> Iterator[ProgramDirectory]:
    """Yield a directory and a function that runs the program there. Pass `is_warm=False` if a service does the work.

    Raises Interrupted if `stop` returns a reason while the program is being started.
    """
    if is_warm and (warm := POOL.take(program, stop)):
        try:
            with workplace(warm.folder, uuid4().hex) as directory:
                yield ProgramDirectory(directory, partial(_run_forked, warm, program))
        finally:
            POOL.give_back(warm)
        return
    directory = POOL.desk().place()
    try:
        yield ProgramDirectory(directory, partial(cold, program))
    finally:
        remove(directory)


def _run_forked(warm: Warm, program: str, arguments: Sequence[str], **options: Unpack[Options]) -> Ended:
    try:
        with _single_order(arguments) as orders:
            child = warm.fork_server.spawn(
                cwd=options["cwd"],
                env=VARIABLES,
                stdin=orders.fileno(),
                limits=options["limits"],
                on_event=options["on_event"],
                on_output=options["on_output"],
            )
    except CannotStart as error:
        # Start the program cold, which needs no warm process. The warm process ends when it is given back.
        log.warning("children.not_forked", program=program, error=str(error))
        return cold(program, arguments, **options)
    with child:
        options["on_start"](child)
        return child.wait(options["stop"])


@contextmanager
def _single_order(arguments: Sequence[str]) -> Iterator[IO[bytes]]:
    """Yield a file that contains one order. The forked process ends when it reaches the end of this file."""
    with TemporaryFile() as orders:
        orders.write(json.dumps(list(arguments)).encode() + b"\n")
        orders.seek(0)
        yield orders


def _start_server(name: str, folder: Path, _held: ExitStack) -> Started:
    command = [*_command(name), "serve"]
    return Started(ForkServer(command, cwd=folder, env=VARIABLES, readable=_code(), hidden=hidden_paths.places()))


def _command(program: str) -> list[str]:
    return [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PACKAGES[program].PROGRAM, str(settings.PROGRAMS_DIR)]


def _code() -> list[Path]:
    """Return the packages that the programs import. The programs can read no other code of ADE."""
    packages = (ade_engine, ade_keeper, ade_understanding, *_PACKAGES.values())
    return [Path(package.__path__[0]) for package in packages]


COLD_EXTRACTOR: Run = partial(cold, EXTRACTOR)
COLD_EMBEDDER: Run = partial(cold, EMBEDDER)
POOL = Pool(root, _start_server, lambda: len(_PACKAGES) * settings.ADE_STAGE_CONCURRENCY)
atexit.register(POOL.close)
