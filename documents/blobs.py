"""Stores files in a container of Azure Blob Storage, and behaves like storage for local files.

A missing file raises FileNotFoundError. Every other problem raises an OSError whose message contains no access keys and
no links. Nothing is retried here, because the caller knows when to try again.
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
# Bytes per request. This many bytes are also held in memory.
BLOCK_BYTES = 4 << 20
# Keys per page of a listing, the most that the service returns at once.
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
        """Return the whole blob as a temporary file. A large blob is kept on disk, a small one in memory."""
        # Use the directory for uploads: the default temporary directory may be in memory.
        file = SpooledTemporaryFile(max_size=BLOCK_BYTES, dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - the caller closes it
        try:
            with _as_local(name):
                self._blob(name).download_blob(max_concurrency=1, timeout=self.timeout).readinto(file)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def _open(self, name: str, mode: str = "rb") -> "BlobFile":
        if mode != "rb":
            raise ValueError(f"Blobs can only be opened with mode 'rb', not {mode!r}. Write them with `save`.")
        return BlobFile(self, name)

    def _save(self, name: str, content: File) -> str:  # type: ignore[type-arg]  # takes none at run time
        """Upload a file. Raises FileExistsError if the key exists, and never leaves a partial blob."""
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
        """Delete a blob. A missing blob is ignored, as a missing local file is. Folders exist only as parts of keys."""
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
            for blob in self.client.walk_blobs(name_starts_with=folder, delimiter="/", timeout=self.timeout):
                name = blob.name.removeprefix(folder)
                (folders if name.endswith("/") else names).append(name.rstrip("/"))
        return folders, names

    def walk(self, folder: str) -> Iterator[str | None]:
        with _as_local(folder):
            yield from self.client.list_blob_names(
                name_starts_with=f"{folder}/", results_per_page=PAGE_KEYS, timeout=self.timeout
            )

    def link(self, key: str, disposition: str, content_type: str, *, seconds: int) -> str | None:
        """Return a link that can only read this blob. The link's signature also covers the response headers."""
        self._properties(key)
        headers = {
            "content_disposition": disposition,
            "content_type": content_type,
            "cache_control": "private, no-store",
        }
        protocol = "https" if self.service_client.scheme == "https" else "https,http"
        return str(self.url(key, expire=seconds, parameters=headers | {"protocol": protocol}))

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
        # Refuse keys that validation would change: the service does not resolve "..".
        if self._get_valid_path(name) != name:
            raise SuspiciousFileOperation(f"{name!r} is not the key of a file.")
        return self.client.get_blob_client(name)

    def _properties(self, name: str) -> Any:
        with _as_local(name):
            return self._blob(name).get_blob_properties(timeout=self.timeout)


class BlobFile(File):  # type: ignore[type-arg]  # takes none at run time
    """A blob that is fetched when it is opened, so that a missing blob fails on opening, as a missing local file does.

    A closed BlobFile can be opened again.
    """

    def __init__(self, blobs: Blobs, name: str) -> None:
        super().__init__(blobs.fetch(name), name)
        self._blobs = blobs

    def open(self, mode: str | None = None, *args: Any, **options: Any) -> "BlobFile":
        if self.closed:
            self.file = self._blobs.fetch(self.name or "")
        self.seek(0)
        return self


@contextmanager
def _as_local(name: str) -> Iterator[None]:
    """Convert the client's errors to OSError. Drop their context: it contains URLs, which may include a signature."""
    try:
        yield
    except AzureError as error:
        raise OSError(*_describe(error), name) from None


def _describe(error: AzureError) -> tuple[int, str]:
    """Return an errno and a message for people. Python derives the subclass of OSError from the errno."""
    if isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError):
        return errno.ETIMEDOUT, "the blob service did not answer in time"
    if isinstance(error, ServiceRequestError):
        return errno.EHOSTUNREACH, "the blob service cannot be reached"
    status = error.status_code if isinstance(error, HttpResponseError) else None
    if status is None:
        return errno.EIO, "the blob service cut off its answer"
    error_code = getattr(error, "error_code", None)
    code = str(getattr(error_code, "value", error_code) or "")
    if code == "BlobNotFound":
        return errno.ENOENT, "the blob does not exist"
    if code == "ContainerNotFound":
        # A missing container must not look like a missing file: the blob itself may exist.
        return errno.EIO, "the container does not exist"
    if code in ("BlobAlreadyExists", "ContainerAlreadyExists"):
        return errno.EEXIST, "it already exists"
    answer = f"{status} {code}" if code.isalnum() and len(code) < 64 else str(status)
    if status in (401, 403):
        return errno.EACCES, f"the blob service refuses access ({answer})"
    return errno.EIO, f"the blob service answered with {answer}"
