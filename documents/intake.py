"""Stores uploaded files as documents. The file is stored before the row is written, so no row lacks its file."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from documents import lifecycle, sniffing
from documents.models import Document
from documents.names import clean_name
from work import failpoints
from workspaces.models import Workspace

BINARY = "application/octet-stream"
FOLDER = "documents"
KEY = re.compile(rf"{FOLDER}/[0-9]{{4}}/[0-9]{{2}}/[0-9a-f]{{32}}")

log = structlog.get_logger(__name__)


class Refused(Exception):
    """The file was not accepted. The code is for programs and never changes; the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DuplicateFile(Refused):
    """The workspace has a document with the same bytes. Pass `again` to create another document."""

    def __init__(self, document: Document) -> None:
        super().__init__(
            "already_there", f"This file was already uploaded as document {document.pk} ({document.name})."
        )
        self.document = document


class StorageFailed(Refused):
    """The storage failed. The file is not at fault, so it may be sent again later."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            "storage_unavailable", f"Could not store the file: {error.strerror or error}. Try again later."
        )


class HashingFile(File):  # type: ignore[type-arg]  # takes none at run time
    """Counts and hashes the bytes that the storage reads. Raises Refused if there are more than `most_bytes`."""

    def __init__(self, file: IO[bytes], name: str, most_bytes: int | None = None) -> None:
        super().__init__(file, name)
        self.sha256 = hashlib.sha256()
        self.seen_bytes = 0
        self.most_bytes = most_bytes

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        assert self.file is not None
        while data := self.file.read(chunk_size or self.DEFAULT_CHUNK_SIZE):
            self.sha256.update(data)
            self.seen_bytes += len(data)
            if self.most_bytes is not None and self.seen_bytes > self.most_bytes:
                raise too_large()
            yield data


def receive(
    workspace: Workspace,
    file: IO[bytes],
    name: str,
    declared_type: str,
    actor: str,
    *,
    again: bool = False,
    also: Callable[[Document], None] | None = None,
) -> Document:
    """Create a document with its processing job from a readable, seekable file.

    The size and the type are determined here, not taken from the client. Raises DuplicateFile if the workspace already
    has these bytes, unless `again` is set; two simultaneous uploads of the same bytes may both succeed. `also` runs in
    the transaction that creates the row. If this raises Refused, neither a row nor a file remains.
    """
    name = clean_name(name)
    content_type = _detect_type(file, name, declared_type)
    file.seek(0)
    content = HashingFile(file, name, settings.ADE_MAX_UPLOAD_BYTES)
    # The key is generated, because the name of the file is only for people.
    key = f"{FOLDER}/{datetime.now(UTC):%Y/%m}/{uuid4().hex}"
    # Set just before the commit. If the outcome of the commit is unknown, keep the file; the sweeper later deletes it
    # if there is no row.
    may_have_row = False
    try:
        try:
            key = default_storage.save(key, content)
        except OSError as error:
            log.warning("intake.not_stored", key=key, error=str(error))
            raise StorageFailed(error) from error
        failpoints.hit("upload.blob_written")
        values = {
            "name": name,
            "file": key,
            "content_type": content_type,
            "size_bytes": content.seen_bytes,
            "sha256": content.sha256.hexdigest(),
        }
        if not again:
            # Ignore purged documents: their bytes are gone, so they cannot replace this upload.
            same = Document.objects.kept().filter(workspace=workspace, sha256=values["sha256"])
            if document := same.filter(size_bytes=content.seen_bytes).defer("text").order_by("id").first():
                raise DuplicateFile(document)
        with transaction.atomic():
            document = lifecycle.add_document(workspace, values, actor=actor)
            if also is not None:
                also(document)
            failpoints.hit("upload.before_commit")
            may_have_row = True
    except BaseException:
        if not may_have_row:
            with suppress(OSError):
                default_storage.delete(key)
        raise
    return document


def add_file(workspace: Workspace, path: Path, *, actor: str, again: bool = False) -> Document:
    """Create a document from a file on this machine. Raises Refused, and OSError if the file cannot be read."""
    with path.open("rb") as file:
        return receive(workspace, file, path.name, "", actor, again=again)


def store_again(document: Document, name: str, actor: str) -> Document:
    """Create another document from the bytes of this one, without a second upload. Raises Refused."""
    try:
        file = document.file.open("rb")
    except OSError as error:
        raise StorageFailed(error) from error
    with file:
        return receive(document.workspace, file, name, "", actor, again=True)


def too_large() -> Refused:
    return Refused("too_large", f"The file is larger than the limit of {settings.ADE_MAX_UPLOAD_BYTES:,} bytes.")


def _detect_type(file: IO[bytes], name: str, declared_type: str) -> str:
    file.seek(0)
    if not file.read(1):
        raise Refused("empty", f"The file {name} is empty.")
    try:
        content_type = sniffing.sniff(file, name)
    except sniffing.Unknown as error:
        raise Refused("unsupported_type", str(error)) from error
    except sniffing.Ambiguous as error:
        raise Refused("type_mismatch", str(error)) from error
    if problem := sniffing.problem(name, declared_type, content_type):
        raise Refused("type_mismatch", problem)
    return content_type
