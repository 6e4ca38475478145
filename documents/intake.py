"""Files on their way in: stored first, and then told of, so that no row is ever without its file."""

import hashlib
import mimetypes
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from django.core.files import File
from django.core.files.storage import default_storage

from documents import lifecycle
from documents.models import Document, Workspace

BINARY = "application/octet-stream"


class Hashed(File):  # type: ignore[type-arg]  # takes none at run time
    """Counts and hashes what the storage reads of it."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        super().__init__(file, name)
        self.sha256 = hashlib.sha256()
        self.seen_bytes = 0

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        assert self.file is not None
        while data := self.file.read(chunk_size or self.DEFAULT_CHUNK_SIZE):
            self.sha256.update(data)
            self.seen_bytes += len(data)
            yield data


def add_file(workspace: Workspace, path: Path, *, actor: str) -> Document:
    """The document of a file on this machine. Raises OSError when it cannot be read."""
    with path.open("rb") as source:
        hashed = Hashed(source, path.name)
        # The name is for people; where it lies is ours to say.
        stored = default_storage.save(f"documents/{datetime.now(UTC):%Y/%m}/{uuid4().hex}", hashed)
    values: dict[str, Any] = {
        "name": path.name,
        "file": stored,
        "content_type": mimetypes.guess_type(path.name)[0] or BINARY,
        "size_bytes": hashed.seen_bytes,
        "sha256": hashed.sha256.hexdigest(),
    }
    return lifecycle.add_document(workspace, values, actor=actor)
