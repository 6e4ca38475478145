"""Sends stored files or byte ranges of them, and JSON with an ETag. The headers of a file keep browsers from displaying
or executing it: see `documents/downloads.py`.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import structlog
from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from api.errors import Problem
from api.rendering import text_of
from documents import downloads

# At most 19 digits: no file size has more, and Python takes quadratic time to parse very long numbers.
_SPAN = re.compile(r"bytes=[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*", re.ASCII)

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StoredFile:
    stored_as: str
    name: str
    content_type: str
    size_bytes: int
    # Also the ETag.
    sha256: str


def send(request: HttpRequest, stored: StoredFile) -> HttpResponseBase:
    """Return the file, the requested range, a redirect to the storage, or 304. Raises Problem."""
    tag, size_bytes = f'"{stored.sha256}"', stored.size_bytes
    if unchanged := check_tag(request, tag):
        return unchanged
    try:
        if redirect := downloads.storage_redirect(stored.stored_as, stored.name, stored.content_type):
            return redirect
        file = default_storage.open(stored.stored_as)
    except (OSError, ValueError) as error:
        raise _not_readable(stored, error) from error
    try:
        if file.size != size_bytes:
            raise _not_readable(stored, f"{file.size} bytes instead of {size_bytes}")
        requested = _requested_range(request, tag, size_bytes)
        span = range(size_bytes) if requested is None else requested
        response = downloads.stream_file(request, _Part(file, span), stored.name, stored.content_type)
    except BaseException:
        file.close()
        raise
    response["ETag"], response["Accept-Ranges"], response["Content-Length"] = tag, "bytes", str(len(span))
    if requested is not None:
        response.status_code = 206
        response["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size_bytes}"
    return response


def send_json(request: HttpRequest, data: dict[str, Any]) -> HttpResponseBase:
    """Return the data with an ETag of its content, or 304 if the caller already has that content."""
    body = text_of(data).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return check_tag(request, tag) or HttpResponse(body, "application/json", headers={"ETag": tag})


class _Part:
    """A read-only view of a range of a file."""

    def __init__(self, file: Any, span: range) -> None:
        self._file, self._left_bytes = file, len(span)
        if span.start:
            file.seek(span.start)

    def read(self, size: int, /) -> bytes:
        data: bytes = self._file.read(min(size, self._left_bytes))
        self._left_bytes -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


def check_tag(request: HttpRequest, tag: str) -> HttpResponseBase | None:
    response = get_conditional_response(request, etag=tag)
    if response is None:
        return None
    if response.status_code == 412:
        message = f"It has changed: the tag is now {tag}, which is not the one in If-Match."
        raise Problem("precondition_failed", message, {"etag": tag})
    response["ETag"] = tag
    return response


def _requested_range(request: HttpRequest, tag: str, size_bytes: int) -> range | None:
    """Return the requested range. Return None, for the whole file, without a range, with several ranges, or if If-Range
    doesn't match.
    """
    header = request.headers.get("Range", "")
    is_of_another = request.headers.get("If-Range", tag) != tag
    if is_of_another or "," in header or not header.startswith("bytes="):
        return None
    whole = range(size_bytes)
    match = _SPAN.fullmatch(header)
    first, last = match.groups() if match else ("", "")
    if first:
        span = whole[int(first) : int(last) + 1] if last else whole[int(first) :]
        is_backwards = bool(last) and int(last) < int(first)
    else:
        span, is_backwards = whole[max(0, size_bytes - int(last or 0)) :], False
    if not span or is_backwards:
        message = f"The range is not in the file, which has {size_bytes:,} bytes. Use a range such as bytes=0-99."
        headers = {"Content-Range": f"bytes */{size_bytes}"}
        raise Problem("range_not_satisfiable", message, {"size_bytes": size_bytes}, headers=headers)
    return span


def _not_readable(stored: StoredFile, error: object) -> Problem:
    log.error("files.not_readable", file=stored.stored_as, error=str(error))
    message = "The file cannot be read from the storage. Try again later, or contact an operator."
    return Problem("unavailable", message, headers={"Retry-After": "30"})
