"""How this process takes requests: a body lies below ADE_VAR_DIR while it comes, and no more than an upload may have.

Django reads the whole body before it looks at the request, however long it is, into the folder of the machine that all
programs share.
"""

from collections.abc import Awaitable, Callable, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpResponse
from django.http.response import HttpResponseBase

# The other fields of a form, and what is between them.
BESIDE_BYTES = 1 << 20
# A browser shows no answer before it has sent everything; nobody waits for it for ever.
READ_AT_MOST = 4

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class Body(SpooledTemporaryFile[bytes]):
    """Of a body that is too large, it holds nothing."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(settings.FILE_UPLOAD_MAX_MEMORY_SIZE, dir=settings.FILE_UPLOAD_TEMP_DIR)
        self.most_bytes = most_bytes
        self.received_bytes = 0

    @property
    def is_too_large(self) -> bool:
        return self.received_bytes > self.most_bytes

    def take(self, data: bytes) -> None:
        self.received_bytes += len(data)
        if not self.is_too_large:
            self.write(data)
        elif self.tell():
            self.seek(0)
            self.truncate()


class Handler(ASGIHandler):
    async def read_body(self, receive: Receive) -> IO[bytes]:
        body = Body(settings.ADE_MAX_UPLOAD_BYTES + BESIDE_BYTES)
        while body.received_bytes <= body.most_bytes * READ_AT_MOST:
            message = await receive()
            if message["type"] == "http.disconnect":
                body.close()
                raise RequestAborted
            body.take(message.get("body", b""))
            if not message.get("more_body", False):
                break
        body.seek(0)
        return body

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        if isinstance(body_file, Body) and body_file.is_too_large:
            found = f"expected at most {body_file.most_bytes:,} bytes, found more; a file may have at most"
            message = f"{found} {settings.ADE_MAX_UPLOAD_BYTES:,}\n"
            return None, HttpResponse(message, "text/plain", 413, headers={"Connection": "close"})
        return super().create_request(scope, body_file)
