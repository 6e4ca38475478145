"""Stores the output of each stage for the next one, in a file with a checksum, at a path derived from the job.

A stage that finds its own output complete has no work left: an earlier worker stored the output and then died.
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

# Increase this when the format of an output changes. Stages then ignore older outputs and make new ones.
VERSION = 3
ROOT = "processing"
_BLOCK_BYTES = 1 << 20
# Larger outputs are buffered in a temporary file.
_MEMORY_BYTES = 8 << 20


def path_of(job_id: int, stage: str, segment: int = 0) -> str:
    return f"{ROOT}/{job_id}/{stage}-v{VERSION}-{segment:05}.json"


def load(path: str) -> Any | None:
    """Return the stored value, or None if it is missing or incomplete."""
    body = BytesIO()
    return json.loads(body.getvalue()) if _copy(path, body) else None


def fetch(path: str, to: Path) -> bool:
    """Copy the output to a file without loading it into memory. Return False if it is missing or incomplete."""
    with to.open("wb") as file:
        return _copy(path, file)


def open_file(path: str) -> IO[bytes] | None:
    """Return the output as a temporary file, or None if it is missing or incomplete."""
    file = TemporaryFile()  # noqa: SIM115  # the caller closes it
    if _copy(path, file):
        file.seek(0)
        return file
    file.close()
    return None


def store(path: str, body: IO[bytes]) -> None:
    """Store a file unless it is already stored completely. Workers that do the same stage write the same bytes."""
    sha256 = hashlib.sha256()
    body.seek(0)
    while block := body.read(_BLOCK_BYTES):
        sha256.update(block)
    with SpooledTemporaryFile(_MEMORY_BYTES) as file:
        file.write(_line(sha256.hexdigest()))
        body.seek(0)
        shutil.copyfileobj(body, file, _BLOCK_BYTES)
        while True:
            with TemporaryFile() as current:
                # Keep a complete file: another worker wrote the same bytes, and a later stage may be reading them.
                if _copy(path, current):
                    return
            file.seek(0)
            with suppress(FileNotFoundError):
                default_storage.delete(path)
            try:
                name = default_storage.save(path, File(file))
            except FileExistsError:
                # Another worker was faster. A storage that never raises this error saves our file under another name.
                return
            except FileNotFoundError:
                # Another worker deleted our file while it was still incomplete.
                continue
            if name != path:
                default_storage.delete(name)
            return


def discard(job_id: int) -> None:
    """Delete the outputs of a job that has ended. Some storages keep the empty folder."""
    folder = f"{ROOT}/{job_id}"
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in default_storage.listdir(folder)[1]:
            default_storage.delete(f"{folder}/{name}")
        default_storage.delete(folder)


def _copy(path: str, to: IO[bytes]) -> bool:
    sha256 = hashlib.sha256()
    try:
        with default_storage.open(path) as file:
            checksum = file.readline()
            while block := file.read(_BLOCK_BYTES):
                sha256.update(block)
                to.write(block)
    except FileNotFoundError:
        return False
    return bool(checksum == _line(sha256.hexdigest()))


def _line(checksum: str) -> bytes:
    return f"{checksum}\n".encode()
