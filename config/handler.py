"""The ASGI handler. It stores request bodies in ADE_VAR_DIR while it receives them, and limits their size.

Before looking at a request, Django would read its whole body, whatever its size, into the system's shared temporary
folder.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
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

from api.addresses import client_address, is_proxy, origin_of_address
from api.errors import Problem, is_for_programs, response_of
from api.middleware import HEADER, bind_request_id, forbid_shared_caching
from api.outages import disk_full, is_full_disk
from config.logs import RateLimitedLog

# How much larger than its file a request may be, for the other fields of the form and the separators.
BESIDE_BYTES = 1 << 20
# A browser shows an answer only after it has sent the whole body. So read up to this multiple of the limit before
# giving up.
READ_AT_MOST = 4

# The key in the ASGI scope that holds the thread of a request.
THREAD = "ade.thread"

log = structlog.get_logger(__name__)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Body(SpooledTemporaryFile[bytes]):
    """A spooled request body. If it is too large or the disk is full, its content is dropped."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(settings.FILE_UPLOAD_MAX_MEMORY_SIZE, dir=settings.FILE_UPLOAD_TEMP_DIR)
        self.most_bytes = most_bytes
        self.received_bytes = 0
        self.met_a_full_disk = False

    @property
    def is_too_large(self) -> bool:
        return self.received_bytes > self.most_bytes

    def take(self, data: bytes) -> None:
        self.received_bytes += len(data)
        if not self.is_too_large and not self.met_a_full_disk:
            try:
                self.write(data)
                return
            except OSError as error:
                if not is_full_disk(error):
                    raise
                self.met_a_full_disk = True
        # Drop the content, but keep receiving, because the sender sees no answer before it has sent everything.
        with suppress(OSError):
            if self.tell():
                self.seek(0)
                self.truncate()


class OneThread(Executor):
    """Runs the synchronous parts of one request, one after another, in one thread. The thread may be released between
    them.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="request")
        return self._pool.submit(function, *args, **named)

    def give_back(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            # The thread ends when its work is done. Other requests do not wait for it.
            pool.shutdown(wait=False)


class Handler(ASGIHandler):
    """Runs all middleware and views synchronously, even if the event loop then streams a view's answer."""

    def __init__(self) -> None:
        # Load the middleware as for WSGI, because asynchronous middleware would switch threads for each of its parts.
        self.load_middleware()
        # The number of concurrent requests of each client behind a proxy. Other clients are counted by their
        # connections.
        self.requests_of: Counter[str] = Counter()
        self.seldom = RateLimitedLog()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # Close the websocket, which answers 403. Django would raise an error, so that clients could fill the log.
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        client = _behind_a_proxy(scope)
        if client and self.requests_of[client] >= settings.ADE_CONNECTIONS_PER_CLIENT:
            await self._refuse(scope, send)
            return
        if client:
            self.requests_of[client] += 1
        thread = OneThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle({**scope, THREAD: thread}, receive, send)
        finally:
            thread.give_back()
            if client:
                self.requests_of[client] -= 1
                if not self.requests_of[client]:
                    del self.requests_of[client]

    async def _refuse(self, scope: dict[str, Any], send: Send) -> None:
        """Refuse a request before its body is read. Log repeated refusals only once a minute."""
        most = settings.ADE_CONNECTIONS_PER_CLIENT
        self.seldom.say("handler.too_many_requests_of_a_client", client=_behind_a_proxy(scope), limit=most)
        message = f"More than {most} requests from your address are in progress. Try again in a moment."
        problem = Problem("rate_limited", message, {"requests": most})
        response = _refusal(str(scope["path"]), problem)
        response["Connection"], response["Retry-After"] = "close", "5"
        with bind_request_id(_header(scope, HEADER)) as id:
            response[HEADER] = id
            await self.send_response(response, send)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """If the event loop streams the answer, release the request's thread and database connection first, because
        streaming may take minutes.
        """
        response = await super().run_get_response(request)
        if isinstance(response, StreamingHttpResponse) and response.is_async:
            await sync_to_async(connections.close_all)()
            assert isinstance(request, ASGIRequest)
            request.scope[THREAD].give_back()
        return response

    async def read_body(self, receive: Receive) -> IO[bytes]:
        body = Body(settings.ADE_MAX_UPLOAD_BYTES + BESIDE_BYTES)
        try:
            while body.received_bytes <= body.most_bytes * READ_AT_MOST:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestAborted
                body.take(message.get("body", b""))
                if not message.get("more_body", False):
                    break
        except BaseException:
            body.close()
            raise
        body.seek(0)
        return body

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        """Refuse a body that is too large or does not fit on the disk, and a query string that cannot be decoded.

        No middleware runs for such a refusal, so this method sets the answer's format and request ID.
        """
        path = str(scope["path"])
        refusal: HttpResponseBase
        with bind_request_id(_header(scope, HEADER)) as id:
            if isinstance(body_file, Body) and body_file.is_too_large:
                message = (
                    f"The request has more than {body_file.most_bytes:,} bytes. "
                    f"A file may have at most {settings.ADE_MAX_UPLOAD_BYTES:,} bytes."
                )
                log.warning("handler.too_large", path=path)
                refusal = _refusal(path, Problem("too_large", message))
                refusal["Connection"] = "close"
            elif isinstance(body_file, Body) and body_file.met_a_full_disk:
                log.error("handler.disk_full", path=path)
                refusal = _refusal(path, disk_full())
            else:
                created = super().create_request(scope, body_file)
                if created[1] is None:
                    return created
                # The query string is not UTF-8. No other part is decoded this early. Django has logged the error.
                message = "The query string is not valid UTF-8. Percent-encode it, for example %C3%A9."
                problem = Problem("invalid_request", message)
                refusal = _refusal(path, problem) if is_for_programs(path) else created[1]
        refusal[HEADER] = id
        return None, refusal


def _header(scope: Mapping[str, Any], name: str) -> str:
    """Return a header from the scope, for when there is no request object yet."""
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.lower().encode())


def _behind_a_proxy(scope: Mapping[str, Any]) -> str:
    """Return the client that a trusted proxy names, or an empty string if the request came directly."""
    peer = str((scope.get("client") or ("",))[0])
    return origin_of_address(client_address(peer, _header(scope, "X-Forwarded-For"))) if is_proxy(peer) else ""


def _refusal(path: str, problem: Problem) -> HttpResponse:
    if not is_for_programs(path):
        return HttpResponse(f"{problem.message}\n", "text/plain", problem.answered)
    response = response_of(problem)
    forbid_shared_caching(response, "Authorization", "Cookie")
    return response
