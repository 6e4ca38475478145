"""What ADE asks of the storage of its files beyond what Django does; `files` is the one that settings have chosen."""

from collections.abc import Iterator
from typing import Protocol, cast
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage

# As deep as anything of ADE lies. A link that an operator has laid may lead back to where it is.
LEVELS = 3


class Files(Protocol):
    def walk(self, folder: str) -> Iterator[str | None]:
        """The keys of all files below, none of them held; None for what it costs to find out that there is none."""

    def link(self, key: str, disposition: str, content_type: str, *, seconds: int) -> str | None:
        """Where whoever has it gets this file, for so long; None where ADE sends it itself. Raises OSError."""

    def prepare(self) -> None:
        """Make what has to be there before the first file. Raises OSError."""

    def is_public(self) -> bool:
        """Whether strangers can read what is in it. Raises OSError."""


class LocalFiles(FileSystemStorage):
    """In a directory of this machine, which is made with the first file."""

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


def rehearse() -> None:
    """Write, read and delete a small file. Raises OSError."""
    key = default_storage.save(f"rehearsal/{uuid4().hex}", ContentFile(b"ADE"))
    default_storage.open(key).close()
    default_storage.delete(key)
