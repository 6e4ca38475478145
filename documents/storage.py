"""Defines what ADE needs from a file storage in addition to Django's API. `files` is the configured storage."""

from collections.abc import Iterator
from typing import Protocol, cast
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage

# The depth of ADE's folders. The limit ends the walk if an operator's symbolic link leads back to its own folder.
LEVELS = 3


class Files(Protocol):
    def walk(self, folder: str) -> Iterator[str | None]:
        """Yield the keys of all files below a folder, and None for each step that finds no file.

        Yield each key as soon as it is found, without collecting all keys first.
        """

    def link(self, key: str, disposition: str, content_type: str, *, seconds: int) -> str | None:
        """Return a temporary link to the file, or None if ADE must send it itself. Raises OSError."""

    def prepare(self) -> None:
        """Create everything that must exist before the first file is stored. Raises OSError."""

    def is_public(self) -> bool:
        """Return whether the storage can be read without credentials. Raises OSError."""


class LocalFiles(FileSystemStorage):
    """Files in a local directory, which is created with the first file."""

    def walk(self, folder: str) -> Iterator[str | None]:
        return self._walk(folder, LEVELS)

    def link(self, key: str, disposition: str, content_type: str, *, seconds: int) -> str | None:
        return None

    def prepare(self) -> None:
        pass

    def is_public(self) -> bool:
        return False

    def _walk(self, folder: str, levels: int) -> Iterator[str | None]:
        try:
            folders, names = self.listdir(folder)
        except FileNotFoundError:
            return
        yield from (f"{folder}/{name}" for name in sorted(names))
        for name in sorted(folders) if levels > 1 else ():
            yield None
            yield from self._walk(f"{folder}/{name}", levels - 1)


files = cast(Files, default_storage)


def check() -> None:
    """Write, open and delete a small file. Raises OSError."""
    key = default_storage.save(f"rehearsal/{uuid4().hex}", ContentFile(b"ADE"))
    default_storage.open(key).close()
    default_storage.delete(key)
