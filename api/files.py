"""Sends stored files and tagged JSON. `answer(request, stored_as, name, content_type, size_bytes=…, sha256=…)` sends
a file or a range of it, or 304; `tagged(request, made)` sends JSON with an ETag. A file is sent so that a browser
never displays or executes it: see `documents/downloads.py`.
"""

import hashlib
import re
from typing import Any

import structlog
from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from api.errors import Problem
from api.rendering import text_of
from documents import downloads

# At most 19 digits: no file is larger, and Python takes quadratic time to parse very long numbers.
_SPAN = re.compile(r"bytes=[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*", re.ASCII)

log = structlog.get_logger(__name__)


def answer(
    request: HttpRequest, stored_as: str, name: str, content_type: str, *, size_bytes: int, sha256: str
) -> HttpResponseBase:
    """Send a file. The checksum is the ETag. Raises Problem."""
    tag = f'"{sha256}"'
    if unchanged := as_known(request, tag):
        return unchanged
    try:
        if redirect := downloads.elsewhere(stored_as, name, content_type):
            return redirect
        file = default_storage.open(stored_as)
    except (OSError, ValueError) as error:
        raise _not_readable(stored_as, error) from error
    try:
        if file.size != size_bytes:
            raise _not_readable(stored_as, f"{file.size} bytes instead of {size_bytes}")
        wanted = _wanted(request, tag, size_bytes)
        span = range(size_bytes) if wanted is None else wanted
        response = downloads.sent(request, _Part(file, span), name, content_type)
    except BaseException:
        file.close()
        raise
    response["ETag"], response["Accept-Ranges"], response["Content-Length"] = tag, "bytes", str(len(span))
    if wanted is not None:
        response.status_code = 206
        response["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size_bytes}"
    return response


def tagged(request: HttpRequest, made: dict[str, Any]) -> HttpResponseBase:
    """Return 200 with an ETag of the content, or 304 if the caller has the same."""
    body = text_of(made).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return as_known(request, tag) or HttpResponse(body, "application/json", headers={"ETag": tag})


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


def as_known(request: HttpRequest, tag: str) -> HttpResponseBase | None:
    response = get_conditional_response(request, etag=tag)
    if response is None:
        return None
    if response.status_code == 412:
        message = f"It has changed: the tag is now {tag}, which is not the one in If-Match."
        raise Problem("precondition_failed", message, {"etag": tag})
    response["ETag"] = tag
    return response


def _wanted(request: HttpRequest, tag: str, size_bytes: int) -> range | None:
    """Return the requested range, or None for the whole file: also for several ranges at once, or if If-Range doesn't
    match.
    """
    asked = request.headers.get("Range", "")
    is_of_another = request.headers.get("If-Range", tag) != tag
    if is_of_another or "," in asked or not asked.startswith("bytes="):
        return None
    whole = range(size_bytes)
    found = _SPAN.fullmatch(asked)
    first, last = found.groups() if found else ("", "")
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


def _not_readable(stored_as: str, found: object) -> Problem:
    log.error("files.not_readable", file=stored_as, error=str(found))
    message = "The file cannot be read from the storage. Try again later, or contact an operator."
    return Problem("unavailable", message, headers={"Retry-After": "30"})
