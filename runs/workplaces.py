"""The directory in which one attempt at a run works: its input, its scratch, and what it makes.

Its name carries the claim token, so that a late engine of another claim writes elsewhere. It is locked by the worker
that made it; what a dead worker left is removed by whoever comes next.
"""

import json
import mimetypes
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings

from ade_engine.context import ARTIFACTS as ARTIFACTS
from ade_engine.runner import INPUT
from documents.models import Document
from work import filelocks
from work.supervise import SCRATCH

LOCKS = ".locks"


def root() -> Path:
    return Path(settings.VAR_DIR, "engines")


class Desk:
    """A worker's own folder; below it one for each engine that it keeps, and below that one for each run."""

    def __init__(self) -> None:
        name = uuid4().hex
        self._held = ExitStack()
        self._held.enter_context(filelocks.alone(_lock(name)))
        self.path = root() / name
        self.path.mkdir(mode=0o700, parents=True)

    def place(self) -> Path:
        path = self.path / uuid4().hex
        path.mkdir(mode=0o700)
        return path

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        _lock(self.path.name).unlink(missing_ok=True)
        self._held.close()


def sweep() -> int:
    """Remove the folders of dead workers; answers how many."""
    swept = 0
    with suppress(FileNotFoundError):
        for entry in [each for each in os.scandir(root()) if each.name != LOCKS]:
            with filelocks.alone_at_once(_lock(entry.name)) as dead:
                if dead:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    _lock(entry.name).unlink(missing_ok=True)
                    swept += 1
    return swept


@contextmanager
def workplace(below: Path, name: str) -> Iterator[Path]:
    path = below / name
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _empty(below / SCRATCH)


def lay_out(directory: Path, document: Document, run_id: int | None = None) -> None:
    """Put there what the engine reads."""
    told: dict[str, Any] = {
        "id": document.pk,
        "name": document.name,
        "content_type": document.content_type,
        "size_bytes": document.size_bytes,
        "sha256": document.sha256,
        "pages": document.pages,
    }
    if document.file:
        told["file"] = f"document{_suffix(document)}"
        with document.file.open("rb") as source, open(directory / told["file"], "wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    if document.text:
        told["text"] = "document-text.txt"
        (directory / told["text"]).write_text(document.text, "utf-8", newline="")
    (directory / INPUT).write_text(json.dumps({"run": run_id, "document": told}))


def _suffix(document: Document) -> str:
    # Libraries go by it. The rest of its name is for people.
    found = Path(document.name).suffix.lower()
    if found.removeprefix(".").isascii() and found.removeprefix(".").isalnum() and len(found) <= 8:
        return found
    return mimetypes.guess_extension(document.content_type) or ""


def _empty(scratch: Path) -> None:
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(scratch)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def _lock(name: str) -> Path:
    return root() / LOCKS / name
