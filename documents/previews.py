"""Makes previews for people: pictures of pages and excerpts of tables.

A limited child process makes each preview, as for reading documents. Previews are cached for a day; if a page can never
be shown, the reason is cached instead.
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

from documents.children import EXTRACTOR, program_directory
from documents.extraction import ExtractionFailed, local
from documents.models import Document
from work.processes.supervise import CannotStart

# Most pages take a third of a second, including the start of the child.
WALL_SECONDS = 10.0
# Concurrent previews per web process. Further requests wait for PATIENCE_SECONDS and are then asked to try again.
AT_ONCE = 2
PATIENCE_SECONDS = 2.0
KEPT_SECONDS = 24 * 3600
# Limits of the cache, enough for some thousand pages. Above them, the oldest previews are deleted until only LEFT_OF_IT
# of the limits is used, so that the next previews do not exceed them at once.
MOST_BYTES, MOST_FILES = 256 << 20, 5000
LEFT_OF_IT = 0.9
_BLOCK_BYTES = 1 << 20
_PICTURE, _GLANCE, _REASON = ".png", ".json", ".txt"

log = structlog.get_logger(__name__)


class StoredFile(Protocol):
    """A stored file: a document, or an object that was made for a single call."""

    @property
    def sha256(self) -> str: ...
    @property
    def content_type(self) -> str: ...
    @property
    def file(self) -> Any:
        """The key in the storage, as a string or as the value of a FileField."""


class Excerpt(NamedTuple):
    """The beginning of a page's first table or of its text.

    If pages of this type can be drawn, only the number of pages is set.
    """

    pages: int
    title: str
    rows: list[list[str]]
    rows_total: int
    columns_total: int
    text: str


class PreviewFailed(Exception):
    """The page cannot be shown; the message says why."""


class NoSuchPage(PreviewFailed):
    pass


class Busy(Exception):
    """This process is already making as many previews as it may."""


class _File(NamedTuple):
    at: float
    size: int
    path: Path


_turns = BoundedSemaphore(AT_ONCE)


def can_draw(document: Document) -> bool:
    """Return whether the pages of the document can be drawn and its file still exists."""
    return local.can_draw(document.content_type) and bool(document.file) and document.purged_at is None


def picture(stored: StoredFile, number: int) -> bytes:
    """Return a page as a PNG. The file's type must be one that can be drawn. Raises PreviewFailed and Busy."""
    return _once(stored, number, _PICTURE, _draw)


def excerpt(stored: StoredFile, number: int) -> Excerpt:
    """Return the beginning of a page. Raises PreviewFailed and Busy."""
    content = _once(stored, number, _GLANCE, _peek)
    # Check and convert the excerpt, because the child that wrote it may have been compromised.
    try:
        excerpt = json.loads(content)
        rows = [[str(cell) for cell in row[: local.MOST_COLUMNS]] for row in excerpt["rows"][: local.MOST_ROWS]]
        pages, rows_total, columns_total = (int(excerpt[name]) for name in ("pages", "rows_total", "columns_total"))
        return Excerpt(pages, str(excerpt["title"]), rows, rows_total, columns_total, str(excerpt["text"]))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise PreviewFailed("The extractor returned an invalid excerpt of the page.") from error


def failure_reason(stored: StoredFile, number: int) -> str:
    """Return the cached reason why this page cannot be shown, or "" if none is cached."""
    with suppress(FileNotFoundError):
        return _path(stored, number, _REASON).read_text("utf-8")
    return ""


def forget(sha256: str) -> None:
    """Delete the previews of these bytes on this machine. Other machines delete theirs within a day."""
    for each in _files():
        if each.path.name.startswith(sha256):
            each.path.unlink(missing_ok=True)


def tidy() -> None:
    """Delete previews that are too old. If the cache is too large, also delete the oldest ones."""
    files = sorted(_files())
    old = time.time() - KEPT_SECONDS
    bytes_left, files_left = sum(each.size for each in files), len(files)
    share = LEFT_OF_IT if bytes_left > MOST_BYTES or files_left > MOST_FILES else 1
    for each in files:
        if each.at > old and bytes_left <= MOST_BYTES * share and files_left <= MOST_FILES * share:
            break
        each.path.unlink(missing_ok=True)
        bytes_left, files_left = bytes_left - each.size, files_left - 1


def _once(stored: StoredFile, number: int, suffix: str, make: Callable[[StoredFile, int], bytes]) -> bytes:
    if content := _cached(stored, number, suffix):
        return content
    with _turn():
        # Another request may have made the preview meanwhile.
        if content := _cached(stored, number, suffix):
            return content
        try:
            content = make(stored, number)
        except ExtractionFailed as error:
            if error.code == "no_such_page":
                raise NoSuchPage(error.message) from error
            if error.permanent:
                _keep(_path(stored, number, _REASON), error.message.encode())
            raise PreviewFailed(error.message) from error
        except (CannotStart, OSError) as error:
            log.warning("previews.not_drawn", file=str(stored.file), page=number, error=str(error))
            raise PreviewFailed("The file cannot be fetched or drawn at the moment. Try again later.") from error
        _keep(_path(stored, number, suffix), content)
        return content


def _cached(stored: StoredFile, number: int, suffix: str) -> bytes | None:
    if reason := failure_reason(stored, number):
        raise PreviewFailed(reason)
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


def _draw(stored: StoredFile, number: int) -> bytes:
    with program_directory(EXTRACTOR, lambda: None, is_warm=False) as (directory, run):
        file = _local_file(stored, directory)
        return local.draw(file, stored.content_type, number, directory, wall_seconds=WALL_SECONDS, run=run)


def _peek(stored: StoredFile, number: int) -> bytes:
    with program_directory(EXTRACTOR, lambda: None, is_warm=False) as (directory, run):
        file = _local_file(stored, directory)
        return local.peek(file, stored.content_type, number, directory, wall_seconds=WALL_SECONDS, run=run)


def _local_file(stored: StoredFile, directory: Path) -> Path:
    """Return the path of the stored file if it is local, and otherwise of a copy in the directory.

    The child can read a local file but not change it. Raises OSError.
    """
    name = str(stored.file)
    with suppress(NotImplementedError):
        return Path(default_storage.path(name))
    with default_storage.open(name) as source, (directory / "document").open("xb") as file:
        while block := source.read(_BLOCK_BYTES):
            file.write(block)
    return directory / "document"


def _keep(path: Path, content: bytes) -> None:
    """Store a preview atomically. If that fails, only log it, because the preview can be made again."""
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


def _path(stored: StoredFile, number: int, suffix: str) -> Path:
    # The name depends only on the content: permissions were checked before, and the preview is the same for everyone.
    return _folder() / f"{stored.sha256}-{number}{suffix}"


def _folder() -> Path:
    return Path(settings.VAR_DIR, "previews")


def _files() -> Iterator[_File]:
    with suppress(FileNotFoundError), os.scandir(_folder()) as entries:
        for entry in entries:
            # Another process may have deleted the file meanwhile.
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                yield _File(status.st_mtime, status.st_size, Path(entry.path))
