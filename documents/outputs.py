"""What stages hand to each other: files at places that follow from the job, with a checksum in their first line.

A stage that finds its own output there, whole, has nothing left to do: whoever was at it before has died only after.
"""

import hashlib
import json
import shutil
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, Any

from django.core.files.base import File
from django.core.files.storage import default_storage

# Raised when what a stage makes changes: older outputs are then made anew.
VERSION = 2
ROOT = "processing"
_BLOCK_BYTES = 1 << 20
# What is larger goes by a file.
_MEMORY_BYTES = 8 << 20


def path_of(job_id: int, stage: str, segment: int = 0) -> str:
    return f"{ROOT}/{job_id}/{stage}-v{VERSION}-{segment:05}.json"


def load(path: str) -> Any | None:
    """None when there is none, or not all of it."""
    body = BytesIO()
    return json.loads(body.getvalue()) if _copy(path, body) else None


def fetch(path: str, to: Path) -> bool:
    """As a file, without taking it into memory; False when there is none, or not all of it."""
    with to.open("wb") as file:
        return _copy(path, file)


def opened(path: str) -> IO[bytes] | None:
    """As a file that goes when it is closed; None when there is none, or not all of it."""
    file = TemporaryFile()  # noqa: SIM115  # whoever asked closes it
    if _copy(path, file):
        file.seek(0)
        return file
    file.close()
    return None


def store(path: str, value: Any) -> None:
    """Unless it is there, and whole: two who do the same at the same time write the same."""
    body = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    _save(path, BytesIO(body))


def store_file(path: str, made: IO[bytes]) -> None:
    """As `store` does, of what was written already."""
    made.seek(0)
    _save(path, made)


def discard(job_id: int) -> None:
    """The outputs of a job that has ended; the storage may keep the folder."""
    folder = f"{ROOT}/{job_id}"
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in default_storage.listdir(folder)[1]:
            default_storage.delete(f"{folder}/{name}")
        default_storage.delete(folder)


def _is_whole(path: str) -> bool:
    with TemporaryFile() as file:
        return _copy(path, file)


def _save(path: str, body: IO[bytes]) -> None:
    if _is_whole(path):
        # Of somebody who did the same, and may already be gone on from.
        return
    with suppress(FileNotFoundError):
        default_storage.delete(path)
    with SpooledTemporaryFile(_MEMORY_BYTES) as file:
        file.write(_line(_checksum(body)))
        body.seek(0)
        shutil.copyfileobj(body, file, _BLOCK_BYTES)
        file.seek(0)
        # Somebody else may be faster. The storage then says so, or finds another name for ours.
        with suppress(FileExistsError):
            stored = default_storage.save(path, File(file))
            if stored != path:
                default_storage.delete(stored)


def _copy(path: str, to: IO[bytes]) -> bool:
    sha256 = hashlib.sha256()
    try:
        with default_storage.open(path) as file:
            told = file.readline()
            while block := file.read(_BLOCK_BYTES):
                sha256.update(block)
                to.write(block)
    except FileNotFoundError:
        return False
    return bool(told == _line(sha256.hexdigest()))


def _checksum(body: IO[bytes]) -> str:
    sha256 = hashlib.sha256()
    while block := body.read(_BLOCK_BYTES):
        sha256.update(block)
    return sha256.hexdigest()


def _line(checksum: str) -> bytes:
    return f"{checksum}\n".encode()
