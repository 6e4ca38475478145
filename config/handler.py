"""How this process takes requests: a body lies below ADE_VAR_DIR while it comes, and no more than an upload may have.

Django reads the whole body before it looks at the request, however long it is, into the folder of the machine that all
programs share.
"""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import structlog
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from api.errors import Problem, answer_of, is_for_programs
from api.middleware import HEADER, keep_to_them, known

# The other fields of a form, and what is between them.
BESIDE_BYTES = 1 << 20
# A browser shows no answer before it has sent everything; nobody waits for it for ever.
READ_AT_MOST = 4

# Under which the thread of a request is found.
THREAD = "ade.thread"

log = structlog.get_logger(__name__)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


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


class OneThread(Executor):
    """Where the synchronous parts of one request run, one after the other. It may be given back in between."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="request")
        return self._pool.submit(function, *args, **named)

    def give_back(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            # It ends when it is done; the other requests do not wait for it.
            pool.shutdown(wait=False)


class Handler(ASGIHandler):
    """All middleware and all views are synchronous, also those whose answers are streamed by the event loop."""

    def __init__(self) -> None:
        # As for WSGI: asynchronous, the middleware would go to the thread and back for each of its parts.
        self.load_middleware()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        thread = OneThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle({**scope, THREAD: thread}, receive, send)
        finally:
            thread.give_back()

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """What is streamed by the event loop is sent for minutes, and does without a thread and a connection."""
        response = await super().run_get_response(request)
        if isinstance(response, StreamingHttpResponse) and response.is_async:
            await sync_to_async(connections.close_all)()
            assert isinstance(request, ASGIRequest)
            request.scope[THREAD].give_back()
        return response

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
        """Nobody behind this gives a refusal its shape and its id."""
        with known(_header(scope, HEADER)) as id:
            if isinstance(body_file, Body) and body_file.is_too_large:
                refusal = _too_large(str(scope["path"]), body_file)
            else:
                made = super().create_request(scope, body_file)
                if made[1] is None:
                    return made
                refusal = _not_readable(str(scope["path"]), made[1])
        refusal[HEADER] = id
        return None, refusal


def _header(scope: Mapping[str, Any], name: str) -> str:
    """As requests have it, where there is none yet."""
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.lower().encode())


def _too_large(path: str, body: Body) -> HttpResponseBase:
    message = (
        f"expected at most {body.most_bytes:,} bytes, found more; "
        f"a file may have at most {settings.ADE_MAX_UPLOAD_BYTES:,}"
    )
    log.warning("handler.too_large", path=path)
    response = _for_programs(path, Problem("too_large", message)) or HttpResponse(f"{message}\n", "text/plain", 413)
    response["Connection"] = "close"
    return response


def _not_readable(path: str, refused: HttpResponseBase) -> HttpResponseBase:
    """The query string alone is decoded when a request is made. Django has logged it."""
    message = "expected a query string in UTF-8, found bytes that are not; encode them, as %C3%A9"
    return _for_programs(path, Problem("invalid_request", message)) or refused


def _for_programs(path: str, problem: Problem) -> HttpResponse | None:
    if not is_for_programs(path):
        return None
    response = answer_of(problem)
    keep_to_them(response, "Authorization", "Cookie")
    return response
