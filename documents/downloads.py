"""Sends stored files as downloads, which browsers neither display nor run.

If the storage can send files itself, the response redirects to a link that gives access to this one file for a few
minutes.

Signed-in users can download the files that they may see. A signed link needs no sign-in: it contains the file and the
user for whom it was made, expires after a few minutes, and stops working if that user loses access.
"""

from collections.abc import AsyncIterator
from typing import Protocol

import structlog
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.core.handlers.asgi import ASGIRequest
from django.core.signing import BadSignature, TimestampSigner
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from documents import sniffing
from documents.intake import BINARY
from documents.names import clean_name
from documents.storage import files
from workspaces.models import Person

LINK_SECONDS = 300
# Types that browsers do not run. Files of all other types, such as HTML, are sent as binary data.
SERVED = {
    *(sniffing.PDF, sniffing.DOCX, sniffing.XLSX, sniffing.XLS, sniffing.ODS, sniffing.CSV, sniffing.TXT),
    *(sniffing.PNG, sniffing.JPEG, sniffing.TIFF, "application/json", "application/zip"),
}
_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_BLOCK_BYTES = 1 << 16

log = structlog.get_logger(__name__)


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


def key_of(kind: str, id: int, user: Person) -> str:
    """Return a key that allows a download without sign-in for LINK_SECONDS, as long as this user has access."""
    return _signer(kind).sign(f"{id}-{user.pk}")


def may_see(request: HttpRequest, kind: str, id: int) -> Person:
    """Return the user whose access applies: the user of the signed link if there is one, or the signed-in user.

    Raises Http404 for an invalid or expired key.
    """
    key = request.GET.get("key")
    if key is None:
        return request.user
    try:
        signed, _, user_id = _signer(kind).unsign(key, max_age=LINK_SECONDS).partition("-")
    except BadSignature as error:
        raise Http404 from error
    user = get_user_model().objects.filter(pk=user_id, is_active=True).first()
    if user is None or signed != str(id):
        raise Http404
    return user


def respond(request: HttpRequest, stored_as: str, name: str, content_type: str) -> HttpResponseBase:
    """Return the stored file or a redirect to it. For HEAD requests, return only the headers."""
    try:
        if redirect := storage_redirect(stored_as, name, content_type):
            return redirect
        file = default_storage.open(stored_as)
    except (OSError, ValueError) as error:
        log.error("downloads.not_readable", file=stored_as, error=str(error))
        message = "The file cannot be read from the storage. Try again later, or contact an operator.\n"
        return HttpResponse(message, "text/plain", 503)
    response = stream_file(request, file, name, content_type)
    if request.method == "HEAD":
        response.close()
        return HttpResponse(headers=dict(response.items()))
    return response


def storage_redirect(stored_as: str, name: str, content_type: str) -> HttpResponseRedirect | None:
    """Return a redirect to the storage's own link, or None if the storage has no links. Raises OSError, ValueError."""
    disposition = content_disposition_header(as_attachment=True, filename=clean_name(name)) or "attachment"
    link = files.link(stored_as, disposition, _served_as(content_type), seconds=LINK_SECONDS)
    return HttpResponseRedirect(link, headers=_HEADERS) if link else None


def stream_file(request: HttpRequest, file: Readable, name: str, content_type: str) -> FileResponse:
    """Return a response that streams the file from its current position and closes it."""
    response = FileResponse(
        file,
        as_attachment=True,
        filename=clean_name(name),
        content_type=_served_as(content_type),
        headers=_HEADERS,
    )
    response.block_size = _BLOCK_BYTES
    if isinstance(request, ASGIRequest):
        # Under ASGI, Django would read the whole file into memory first.
        response.streaming_content = _parts(file)
    return response


def _served_as(content_type: str) -> str:
    return content_type if content_type in SERVED else BINARY


async def _parts(file: Readable) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read)
    while data := await read(_BLOCK_BYTES):
        yield data


def _signer(kind: str) -> TimestampSigner:
    return TimestampSigner(salt=f"documents.downloads.{kind}")
