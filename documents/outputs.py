"""What stages hand to each other: files at places that follow from the job, with a checksum in their first line.

A stage that finds its own output there, whole, has nothing left to do: whoever was at it before has died only after.
"""

import hashlib
import json
from contextlib import suppress
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

# Raised when what a stage makes changes: older outputs are then made anew.
VERSION = 1


ROOT = "processing"


def path_of(job_id: int, stage: str, segment: int = 0) -> str:
    return f"{ROOT}/{job_id}/{stage}-v{VERSION}-{segment:05}.json"


def load(path: str) -> Any | None:
    """None when there is none, or not all of it."""
    try:
        with default_storage.open(path) as file:
            told, _, body = file.read().partition(b"\n")
    except FileNotFoundError:
        return None
    return json.loads(body) if told == _checksum(body) else None


def store(path: str, value: Any) -> None:
    """Over what is there. Two who do the same at the same time write the same."""
    body = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    with suppress(FileNotFoundError):
        default_storage.delete(path)
    # Somebody else may be faster. The storage then says so, or finds another name for ours.
    with suppress(FileExistsError):
        stored = default_storage.save(path, ContentFile(_checksum(body) + b"\n" + body))
        if stored != path:
            default_storage.delete(stored)


def discard(job_id: int) -> None:
    """The outputs of a job that has ended; the storage may keep the folder."""
    folder = f"{ROOT}/{job_id}"
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in default_storage.listdir(folder)[1]:
            default_storage.delete(f"{folder}/{name}")
        default_storage.delete(folder)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
