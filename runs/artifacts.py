"""Checks the files that a run produced and copies them to the storage.

Each file is opened once, without following links, and from then on only its descriptor is used. So the stored content
is the content that was checked, even if the name leads to another file meanwhile.
"""

import errno
import hashlib
import mimetypes
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.files.storage import default_storage

from ade_engine.context import ARTIFACTS
from documents.intake import BINARY, HashingFile
from runs.models import Artifact

MOST_FILES = 1000
MOST_BYTES = 1 << 30
# Levels of nested folders.
DEEPEST = 8
LONGEST_NAME = 255


class BadArtifact(Exception):
    """A file of a run cannot be stored. The message says which one and why."""

    def __init__(self, message: str, *, over_limit: bool = False) -> None:
        super().__init__(message)
        self.over_limit = over_limit


class Damaged(Exception):
    """A stored file no longer has its original content."""


@dataclass(frozen=True)
class OpenFile:
    """An open file below the artifacts folder of a run."""

    name: str
    file: BinaryIO
    size_bytes: int


def store(directory: Path, run_id: int, token: int) -> list[dict[str, Any]]:
    """Copy all artifacts below this working directory to the storage. Return the values of their rows.

    Raises BadArtifact if one is refused, and then stores none of them.
    """
    rows: list[dict[str, Any]] = []
    try:
        for number, each in enumerate(_files_of(directory), 1):
            with each.file:
                rows.append(_store(each, f"runs/{run_id}/{token}/{number:04}"))
    except BaseException:
        discard(rows)
        raise
    return rows


def copy_out(artifact: Artifact, directory: Path) -> Path:
    """Copy the artifact into the directory under its own name. Raises OSError if that file exists, and Damaged if the
    stored content has changed.
    """
    path = directory / artifact.name
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with default_storage.open(artifact.file) as source, path.open("xb") as file:
        for data in source.chunks():
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != artifact.sha256:
        path.unlink()
        raise Damaged(f"The storage is damaged: the stored file of {artifact.name} has changed.")
    return path


def look(directory: Path, into: Path | None) -> list[dict[str, Any]]:
    """Check the artifacts below this working directory by the rules of `store`, and copy them to `into` if given."""
    rows = []
    for each in _files_of(directory):
        with each.file:
            path = into / each.name if into else None
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    shutil.copyfileobj(each.file, file, 1 << 20)
            rows.append({"name": each.name, "size_bytes": each.size_bytes, "path": path and str(path)})
    return rows


def discard(rows: list[dict[str, Any]]) -> None:
    """Delete the stored files of rows that will not be saved, for example because the claim was lost."""
    for row in rows:
        with suppress(OSError):
            default_storage.delete(row["file"])


def _store(artifact: OpenFile, path: str) -> dict[str, Any]:
    reader = HashingFile(artifact.file, artifact.name)
    try:
        key = default_storage.save(path, reader)
    except BaseException:
        # Part of the file may have been stored.
        with suppress(OSError):
            default_storage.delete(path)
        raise
    return {
        "name": artifact.name,
        "file": key,
        "size_bytes": reader.seen_bytes,
        "sha256": reader.sha256.hexdigest(),
        "content_type": mimetypes.guess_type(artifact.name)[0] or BINARY,
    }


def _files_of(directory: Path) -> Iterator[OpenFile]:
    try:
        root = _open_folder(directory, None)
    except FileNotFoundError as error:
        raise BadArtifact("The working directory of the run is missing.") from error
    try:
        folder = _open_folder(Path(ARTIFACTS), root)
    except FileNotFoundError:
        return
    finally:
        os.close(root)
    count = total = 0
    for each in _below(folder, "", 0):
        count, total = count + 1, total + each.size_bytes
        if count > MOST_FILES or total > MOST_BYTES:
            each.file.close()
            excess = f"has more than {MOST_FILES}" if count > MOST_FILES else f"has {total:,} bytes up to {each.name!r}"
            raise BadArtifact(
                f"A run may have at most {MOST_FILES} artifacts of {MOST_BYTES:,} bytes in total; this one {excess}.",
                over_limit=True,
            )
        yield each


def _open_folder(path: Path, folder: int | None) -> int:
    """Open a folder without following a link, which an engine may have put in its place."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadArtifact(f"{path.name!r} is not a readable directory: {error.strerror}.") from error


def _below(folder: int, prefix: str, depth: int) -> Iterator[OpenFile]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            path = f"{prefix}{name}"
            printable = path.isprintable() and not any(0xD800 <= ord(c) <= 0xDFFF for c in path)
            if not printable or len(path) > LONGEST_NAME:
                shown = path[:80].encode(errors="backslashreplace").decode()
                rule = f"must be printable and at most {LONGEST_NAME} characters long"
                raise BadArtifact(f"The name of an artifact {rule}, not {shown!r}.")
            try:
                # Open without blocking, because a pipe without a writer would block forever.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(name, flags, dir_fd=folder)
            except OSError as error:
                kind = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
                raise BadArtifact(f"Artifact {path!r} cannot be stored: {kind}.") from error
            status = os.fstat(descriptor)
            if not stat.S_ISDIR(status.st_mode):
                _check_file(descriptor, path, status)
                yield OpenFile(path, os.fdopen(descriptor, "rb"), status.st_size)
            elif depth < DEEPEST:
                yield from _below(descriptor, f"{path}/", depth + 1)
            else:
                os.close(descriptor)
                raise BadArtifact(f"Artifacts may be at most {DEEPEST} folders deep, not {path!r}.", over_limit=True)
    finally:
        os.close(folder)


def _check_file(descriptor: int, path: str, status: os.stat_result) -> None:
    problem = ""
    if not stat.S_ISREG(status.st_mode):
        problem = "it is not a regular file"
    elif status.st_nlink != 1:
        problem = f"it has {status.st_nlink} names, and a hard link may lead anywhere"
    if problem:
        os.close(descriptor)
        raise BadArtifact(f"Artifact {path!r} cannot be stored: {problem}.")
