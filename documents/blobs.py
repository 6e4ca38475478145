"""Files in a container of Azure Blob Storage, with the manners of local ones: what is missing is a FileNotFoundError,
and whatever else goes wrong an OSError that says what in words without keys and links.

Nothing is tried twice here: whoever wants the file knows when to ask again.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseTimeoutError,
)
from azure.storage.blob import BlobServiceClient, ContentSettings
from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from storages.backends.azure_storage import AzureStorage

CONNECT_SECONDS = 5
READ_SECONDS = 30
# What is sent and fetched at once, and held in memory meanwhile.
BLOCK_BYTES = 4 << 20
# Told at once; the service tells no more.
PAGE_KEYS = 5000


class Blobs(AzureStorage):  # type: ignore[misc]  # ships no types
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"overwrite_files": False, "timeout": READ_SECONDS} | options)

    def _get_service_client(self) -> BlobServiceClient:
        return BlobServiceClient.from_connection_string(
            self.connection_string,
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retry_total=0,
            max_single_put_size=BLOCK_BYTES,
            max_block_size=BLOCK_BYTES,
            max_single_get_size=BLOCK_BYTES,
            max_chunk_get_size=BLOCK_BYTES,
        )

    def fetch(self, name: str) -> IO[bytes]:
        """All of it, on the disk if it is long."""
        # Beside what comes in: the directory for temporary files of a machine may be in its memory.
        file = SpooledTemporaryFile(max_size=BLOCK_BYTES, dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - who reads it closes it
        try:
            with _as_local(name):
                self._blob(name).download_blob(max_concurrency=1, timeout=self.timeout).readinto(file)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def _open(self, name: str, mode: str = "rb") -> "Fetched":
        if mode != "rb":
            raise ValueError(f"expected to read a blob ('rb'), found mode {mode!r}: it is written by `save`")
        return Fetched(self, name)

    def _save(self, name: str, content: File) -> str:  # type: ignore[type-arg]  # takes none at run time
        """A blob that somebody else has made meanwhile stays, and is a FileExistsError. Half a blob is never there."""
        blocks = content.chunks(BLOCK_BYTES)
        first, second = next(blocks, b""), next(blocks, None)
        with _as_local(name):
            self._blob(name).upload_blob(
                first if second is None else chain([first, second], blocks),
                content_settings=ContentSettings(content_type=self.default_content_type),
                max_concurrency=1,
                timeout=self.timeout,
                overwrite=False,
            )
        return name

    def exists(self, name: str) -> bool:
        try:
            self._properties(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        return int(self._properties(name).size)

    def get_modified_time(self, name: str) -> Any:
        return self._properties(name).last_modified

    def delete(self, name: str) -> None:
        """As of a local file, nobody is told that it was gone already. Folders are not there without files."""
        try:
            with _as_local(name):
                self._blob(name).delete_blob(timeout=self.timeout)
        except FileNotFoundError:
            pass

    def listdir(self, path: str = "") -> tuple[list[str], list[str]]:
        folder = f"{self._get_valid_path(path)}/" if path else ""
        folders: list[str] = []
        names: list[str] = []
        with _as_local(path):
            for found in self.client.walk_blobs(name_starts_with=folder, delimiter="/", timeout=self.timeout):
                name = found.name.removeprefix(folder)
                (folders if name.endswith("/") else names).append(name.rstrip("/"))
        return folders, names

    def walk(self, folder: str) -> Iterator[str | None]:
        with _as_local(folder):
            yield from self.client.list_blob_names(
                name_starts_with=f"{folder}/", results_per_page=PAGE_KEYS, timeout=self.timeout
            )

    def link(self, key: str, disposition: str, content_type: str, *, seconds: int) -> str | None:
        """To read this one, and nothing else. What a browser is told of it is signed too."""
        self._properties(key)
        said = {"content_disposition": disposition, "content_type": content_type, "cache_control": "private, no-store"}
        protocol = "https" if self.service_client.scheme == "https" else "https,http"
        return str(self.url(key, expire=seconds, parameters=said | {"protocol": protocol}))

    def prepare(self) -> None:
        try:
            with _as_local(self.azure_container):
                self.client.create_container(timeout=self.timeout)
        except FileExistsError:
            pass

    def is_public(self) -> bool:
        with _as_local(self.azure_container):
            return bool(self.client.get_container_properties(timeout=self.timeout).public_access)

    def _blob(self, name: str) -> Any:
        # A service knows no way up: it is not told another key than the one that was asked for.
        if self._get_valid_path(name) != name:
            raise SuspiciousFileOperation(f"expected the key of a file, found {name!r}")
        return self.client.get_blob_client(name)

    def _properties(self, name: str) -> Any:
        with _as_local(name):
            return self._blob(name).get_blob_properties(timeout=self.timeout)


class Fetched(File):  # type: ignore[type-arg]  # takes none at run time
    """Whether it is there is known once it is open, as it is of a local file; and it can be opened again."""

    def __init__(self, blobs: Blobs, name: str) -> None:
        super().__init__(blobs.fetch(name), name)
        self._blobs = blobs

    def open(self, mode: str | None = None, *args: Any, **options: Any) -> "Fetched":
        if self.closed:
            self.file = self._blobs.fetch(self.name or "")
        self.seek(0)
        return self


@contextmanager
def _as_local(name: str) -> Iterator[None]:
    """Without the exception of the client: it has addresses in it, and those may have a signature."""
    try:
        yield
    except AzureError as error:
        raise OSError(*_told(error), name) from None


def _told(error: AzureError) -> tuple[int, str]:
    """A number, by which Python chooses the kind of OSError, and words for people."""
    if isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError):
        return errno.ETIMEDOUT, "the blob service has not answered in time"
    if isinstance(error, ServiceRequestError):
        return errno.EHOSTUNREACH, "the blob service cannot be reached"
    status = error.status_code if isinstance(error, HttpResponseError) else None
    if status is None:
        return errno.EIO, "the blob service has broken off its answer"
    return _told_of(status, _code(error))


def _told_of(status: int, code: str) -> tuple[int, str]:
    if code == "BlobNotFound":
        return errno.ENOENT, "there is no such blob"
    if code == "ContainerNotFound":
        # Nothing is known of the blob: it is not the file that is missing.
        return errno.EIO, "the container is not there"
    if code in ("BlobAlreadyExists", "ContainerAlreadyExists"):
        return errno.EEXIST, "it is there already"
    said = f"{status} {code}".strip()
    if status in (401, 403):
        return errno.EACCES, f"the blob service refuses access ({said})"
    return errno.EIO, f"the blob service has answered {said}"


def _code(error: AzureError) -> str:
    found = getattr(error, "error_code", None)
    code = str(getattr(found, "value", found) or "")
    return code if code.isalnum() and len(code) < 64 else ""
