"""The programs that read documents and embed texts, in limited processes: each worker keeps one of each warm for each
of its slots, which forks a fresh process for each piece of work. Where that cannot be, they start cold. Apps above this
one have programs of their own run in the same way.
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
import ade_extractor
from work import private, supervise
from work.supervise import CannotStart, Child, Ended, Limits, OnEvent, OnOutput
from work.warm import Pool, Started, Warm
from work.workplaces import remove, workplace
from work.zygote import Zygote

EXTRACTOR, EMBEDDER = "extractor", "embedder"
# Each says in its PROGRAM how it is started.
_PACKAGES: dict[str, ModuleType] = {EXTRACTOR: ade_extractor, EMBEDDER: ade_embedder}
# Two slots of a worker are busy with as many documents: libraries that start a thread per core would fight over them.
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}

log = structlog.get_logger(__name__)


class Options(TypedDict):
    """How a program is run: as `supervise.run` takes them."""

    cwd: Path
    limits: Limits
    stop: Callable[[], str | None]
    on_start: Callable[[Child], None]
    on_event: OnEvent
    on_output: OnOutput
    # Beside what lies in its directory; one that is kept warm sees no more than that.
    readable: NotRequired[Sequence[Path]]


class Run(Protocol):
    """Runs a program with these arguments until it has ended; None when it has done that and waits for more. Raises
    CannotStart.
    """

    def __call__(self, arguments: Sequence[str], **options: Unpack[Options]) -> Ended | None: ...


class Place(NamedTuple):
    """Where one piece of work is done: what it reads has to lie in there, and what it makes will."""

    directory: Path
    run: Run


def register(program: str, package: ModuleType) -> str:
    """The name of one more program, to ask `place_for` for: that of a package like those here."""
    _PACKAGES[program] = package
    return program


def root() -> Path:
    return Path(settings.VAR_DIR, "extraction")


def cold(program: str, arguments: Sequence[str], **options: Unpack[Options]) -> Ended:
    return supervise.run([*_command(program), *arguments], env=VARIABLES, hidden=private.places(), **options)


@contextmanager
def place_for(program: str, stop: Callable[[], str | None], *, is_warm: bool = True) -> Iterator[Place]:
    """It need not be warm where a service is asked instead.

    Raises Interrupted when `stop` has given a reason while its program was being started.
    """
    if is_warm and (warm := POOL.take(program, stop)):
        try:
            with workplace(warm.folder, uuid4().hex) as directory:
                yield Place(directory, partial(_in_a_fork, warm, program))
        finally:
            POOL.give_back(warm)
        return
    directory = POOL.desk().place()
    try:
        yield Place(directory, partial(cold, program))
    finally:
        remove(directory)


def _in_a_fork(warm: Warm, program: str, arguments: Sequence[str], **options: Unpack[Options]) -> Ended:
    try:
        with _only(arguments) as orders:
            child = warm.zygote.spawn(
                cwd=options["cwd"],
                env=VARIABLES,
                stdin=orders.fileno(),
                limits=options["limits"],
                on_event=options["on_event"],
                on_output=options["on_output"],
            )
    except CannotStart as error:
        # It ends when it is given back; a cold one needs nothing of it.
        log.warning("children.not_forked", program=program, error=str(error))
        return cold(program, arguments, **options)
    with child:
        options["on_start"](child)
        return child.wait(options["stop"])


@contextmanager
def _only(arguments: Sequence[str]) -> Iterator[IO[bytes]]:
    """One order, and then the end."""
    with TemporaryFile() as orders:
        orders.write(json.dumps(list(arguments)).encode() + b"\n")
        orders.seek(0)
        yield orders


def _start(name: str, folder: Path, _held: ExitStack) -> Started:
    return Started(Zygote([*_command(name), "serve"], cwd=folder, env=VARIABLES, hidden=private.places()))


def _command(program: str) -> list[str]:
    return [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PACKAGES[program].PROGRAM, str(settings.BASE_DIR)]


def _most_idle() -> int:
    return len(_PACKAGES) * settings.ADE_STAGE_CONCURRENCY


COLD_EXTRACTOR: Run = partial(cold, EXTRACTOR)
COLD_EMBEDDER: Run = partial(cold, EMBEDDER)
POOL = Pool(root, _start, _most_idle)
atexit.register(POOL.close)
