"""Pages of files as pictures for people, and the beginnings of tables. What draws and reads them runs as what reads
documents does: in a child within limits. What it has made is kept for a day, and so is what was told of a page that
cannot be shown.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.files.storage import default_storage

from documents.children import EXTRACTOR, Place, place_for
from documents.extraction import ExtractionFailed, local
from documents.models import Document
from work.supervise import CannotStart

# Most take a third of a second, with all that it takes to start what draws.
WALL_SECONDS = 10.0
# By one web process. Whoever comes then waits for a moment, and is told to come again.
AT_ONCE = 2
PATIENCE_SECONDS = 2.0
KEPT_SECONDS = 24 * 3600
# Some thousand pages. Beyond that the oldest go, and some more, so that not each one has to make room.
MOST_BYTES, MOST_FILES = 256 << 20, 5000
LEFT_OF_IT = 0.9
_BLOCK_BYTES = 1 << 20
_PICTURE, _GLANCE, _REASON = ".png", ".json", ".txt"

log = structlog.get_logger(__name__)


class Stored(Protocol):
    """A file in the storage: a document, or what is made for the occasion."""

    @property
    def sha256(self) -> str: ...
    @property
    def content_type(self) -> str: ...
    @property
    def file(self) -> Any:
        """Its key, as text or as what a model makes of that."""


class Glance(NamedTuple):
    """The beginning of a page: of its first table, or of its text. Of what is drawn, only how many pages there are."""

    pages: int
    title: str
    rows: list[list[str]]
    rows_total: int
    columns_total: int
    text: str


class NotDrawn(Exception):
    """There is nothing of it to be shown; the message says why, for people."""


class NoSuchPage(NotDrawn):
    pass


class Busy(Exception):
    """As many are drawn as this process draws at the same time."""


class _File(NamedTuple):
    at: float
    size: int
    path: Path


_turns = BoundedSemaphore(AT_ONCE)


def has_looks(document: Document) -> bool:
    """Whether its pages look like something, and are there to be looked at."""
    return local.can_draw(document.content_type) and bool(document.file) and document.purged_at is None


def picture(stored: Stored, number: int) -> bytes:
    """This page of what has looks, as a PNG. Raises NotDrawn and Busy."""
    return _once(stored, number, _PICTURE, _made)


def glance(stored: Stored, number: int) -> Glance:
    """How this page begins. Raises NotDrawn and Busy."""
    return _glance(_once(stored, number, _GLANCE, _peeked))


def why_not(stored: Stored, number: int) -> str:
    """What was told of it when it was tried the last time; nothing when that went well, or is not known."""
    with suppress(FileNotFoundError):
        return _path(stored, number, _REASON).read_text("utf-8")
    return ""


def forget(sha256: str) -> None:
    """On this machine; on others it is gone within a day."""
    for each in _files():
        if each.path.name.startswith(sha256):
            each.path.unlink(missing_ok=True)


def tidy() -> None:
    """Remove what is old, and the oldest of too many."""
    found = sorted(_files())
    old = time.time() - KEPT_SECONDS
    bytes_left, files_left = sum(each.size for each in found), len(found)
    share = LEFT_OF_IT if bytes_left > MOST_BYTES or files_left > MOST_FILES else 1
    for each in found:
        if each.at > old and bytes_left <= MOST_BYTES * share and files_left <= MOST_FILES * share:
            break
        each.path.unlink(missing_ok=True)
        bytes_left, files_left = bytes_left - each.size, files_left - 1


def _once(stored: Stored, number: int, suffix: str, make: Callable[[Stored, int], bytes]) -> bytes:
    if found := _kept(stored, number, suffix):
        return found
    with _turn():
        # Somebody else may have wanted the same.
        return _kept(stored, number, suffix) or _anew(stored, number, suffix, make)


def _kept(stored: Stored, number: int, suffix: str) -> bytes | None:
    if said := why_not(stored, number):
        raise NotDrawn(said)
    with suppress(FileNotFoundError):
        return _path(stored, number, suffix).read_bytes()
    return None


@contextmanager
def _turn() -> Iterator[None]:
    if not _turns.acquire(timeout=PATIENCE_SECONDS):
        raise Busy
    try:
        yield
    finally:
        _turns.release()


def _anew(stored: Stored, number: int, suffix: str, make: Callable[[Stored, int], bytes]) -> bytes:
    try:
        made = make(stored, number)
    except ExtractionFailed as failed:
        if failed.code == "no_such_page":
            raise NoSuchPage(failed.message) from failed
        if failed.permanent:
            _keep(_path(stored, number, _REASON), failed.message.encode())
        raise NotDrawn(failed.message) from failed
    except (CannotStart, OSError) as error:
        log.warning("previews.not_drawn", file=str(stored.file), page=number, error=str(error))
        raise NotDrawn("expected to fetch the file and to draw its page, found that this cannot be done now") from error
    _keep(_path(stored, number, suffix), made)
    return made


def _made(stored: Stored, number: int) -> bytes:
    with _laid_out(stored) as (file, place):
        return local.draw(file, stored.content_type, number, place.directory, wall_seconds=WALL_SECONDS, run=place.run)


def _peeked(stored: Stored, number: int) -> bytes:
    with _laid_out(stored) as (file, place):
        return local.peek(file, stored.content_type, number, place.directory, wall_seconds=WALL_SECONDS, run=place.run)


@contextmanager
def _laid_out(stored: Stored) -> Iterator[tuple[Path, Place]]:
    with place_for(EXTRACTOR, lambda: None, is_warm=False) as place:
        yield _at_hand(stored, place.directory), place


def _glance(content: bytes) -> Glance:
    """Whoever wrote it may have been taken over: it has the shape that it should have, or is none."""
    try:
        told = json.loads(content)
        rows = [[str(cell) for cell in row[: local.MOST_COLUMNS]] for row in told["rows"][: local.MOST_ROWS]]
        numbers = [int(told[name]) for name in ("pages", "rows_total", "columns_total")]
        return Glance(numbers[0], str(told["title"]), rows, numbers[1], numbers[2], str(told["text"]))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise NotDrawn("expected the extractor to tell how the page begins, found something else") from error


def _at_hand(stored: Stored, directory: Path) -> Path:
    """Where it lies if that is here: its reader may look at it there, and not change it. Raises OSError."""
    name = str(stored.file)
    with suppress(NotImplementedError):
        return Path(default_storage.path(name))
    with default_storage.open(name) as source, (directory / "document").open("xb") as file:
        while block := source.read(_BLOCK_BYTES):
            file.write(block)
    return directory / "document"


def _keep(path: Path, content: bytes) -> None:
    """Nobody finds half of it. What cannot be kept is drawn again."""
    unfinished = path.parent / f"{uuid4().hex}.part"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
        tidy()
    except OSError as error:
        log.warning("previews.not_kept", error=str(error))
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _path(stored: Stored, number: int, suffix: str) -> Path:
    # Of the same bytes, whoever has them: who may see them was asked before.
    return _folder() / f"{stored.sha256}-{number}{suffix}"


def _folder() -> Path:
    return Path(settings.VAR_DIR, "previews")


def _files() -> Iterator[_File]:
    with suppress(FileNotFoundError), os.scandir(_folder()) as entries:
        for entry in entries:
            # Somebody else may be tidying up.
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                yield _File(found.st_mtime, found.st_size, Path(entry.path))
