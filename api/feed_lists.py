"""OPML files with lists of feeds: reads an uploaded list from a body or a form, and sends a list as a response."""

import hashlib

from django.http import HttpRequest, HttpResponse

from api.errors import Problem
from feeds.opml import MOST_BYTES

XML = ("text/xml", "application/xml", "text/x-opml", "application/x-opml+xml")
FORM = "multipart/form-data"
FIELD = "file"

_TEXT = {"schema": {"type": "string"}, "example": '<opml version="2.0"><body/></opml>'}
_IN_A_FORM = {"type": "object", "required": [FIELD], "properties": {FIELD: {"type": "string", "format": "binary"}}}
UPLOAD = {"requestBody": {"required": True, "content": dict.fromkeys(XML, _TEXT) | {FORM: {"schema": _IN_A_FORM}}}}
FILE = {"description": "A file.", "content": {"application/xml": {"schema": {"type": "string"}}}}
DOWNLOAD = {"responses": {200: FILE}}


def body_of(request: HttpRequest) -> bytes:
    """Return the uploaded list. Raises Problem if it is too large."""
    if request.content_type == FORM:
        files = [(name, file) for name, values in request.FILES.lists() for file in values]
        if [name for name, _ in files] != [FIELD] or request.POST:
            fields = ", ".join([*request.POST, *(name for name, _ in files)]) or "none"
            message = (
                f"The form must have one file in the field {FIELD!r} and no other fields. Fields found: {fields[:200]}."
            )
            raise Problem("invalid_request", message)
        data = bytes(files[0][1].read(MOST_BYTES + 1))
    elif request.content_type in XML:
        # `request.body` would refuse lists longer than DATA_UPLOAD_MAX_MEMORY_SIZE.
        data = request.read(MOST_BYTES + 1)
    else:
        message = f"Unsupported content type {request.content_type or '(none)'}. Use {', '.join(XML)} or {FORM}."
        raise Problem("unsupported_media_type", message)
    if len(data) > MOST_BYTES:
        raise Problem("too_large", f"The list is larger than {MOST_BYTES:,} bytes. Split it.")
    return data


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def response_of(data: bytes) -> HttpResponse:
    headers = {"Content-Disposition": 'attachment; filename="feeds.opml"'}
    return HttpResponse(data, "application/xml; charset=utf-8", headers=headers)
