"""Adds timeouts for slow clients, and limits on the number of connections, to a web process.

gunicorn's own ASGI worker waits forever for the headers of a request, and accepts connections until the process has no
file descriptors left. Here every wait has a timeout. At the connection limit, the connection that has waited longest
without sending a request is closed. If there is none, the connection that sends its body most slowly is closed. So
clients that send promptly are answered.
"""

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from api.addresses import is_proxy, origin_of_address
from config.logs import RateLimitedLog

# Time limit for the headers of a request, which fit into a few packets.
HEADER_SECONDS = 10.0
# Time limit for the body of a request, plus one second per KiB received. No real connection is slower.
BODY_SECONDS = 30.0
BODY_BYTES_PER_SECOND = 1024
# A client that reads nothing of its answer for this long is gone or holds the connection open on purpose.
WRITE_SECONDS = 60.0
# With SQLite, a request opens the database, its WAL and the WAL index. Uploads and downloads also open a file.
DESCRIPTORS_PER_CONNECTION = 4
OTHER_DESCRIPTORS = 128

log = structlog.get_logger(__name__)


class Connections:
    def __init__(self, most: int, most_of_one: int) -> None:
        self.most, self.most_of_one = most, most_of_one
        self.seldom = RateLimitedLog()
        self._open: set[Connection] = set()
        self._of: Counter[str] = Counter()
        # Connections without complete headers, the longest waiting first.
        self._waiting: dict[Connection, None] = {}
        # Connections with complete headers and an incomplete body.
        self._sending: set[Connection] = set()

    def admit(self, new: "Connection") -> bool:
        """Accept a connection. Return False if a limit is reached and no waiting or slow connection can be closed."""
        if new.client and self._of[new.client] >= self.most_of_one and not self._make_room(new.client):
            self.seldom.say("web.too_many_connections_of_a_client", client=new.client, limit=self.most_of_one)
            return False
        if len(self._open) >= self.most and not self._make_room(""):
            self.seldom.say("web.too_many_connections", limit=self.most)
            return False
        self._open.add(new)
        self._of[new.client] += 1
        return True

    def leave(self, gone: "Connection") -> None:
        self._waiting.pop(gone, None)
        self._sending.discard(gone)
        if gone in self._open:
            self._open.remove(gone)
            self._of[gone.client] -= 1
            if not self._of[gone.client]:
                del self._of[gone.client]

    def waits(self, connection: "Connection") -> None:
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def sends(self, connection: "Connection") -> None:
        self._waiting.pop(connection, None)
        self._sending.add(connection)

    def has_asked(self, connection: "Connection") -> None:
        self._sending.discard(connection)

    def _make_room(self, client: str) -> bool:
        """Close the connection that has waited longest or sends most slowly. If `client` is given, close one of its
        connections.
        """
        connection = next((each for each in self._waiting if not client or each.client == client), None)
        if connection is None:
            # Choose the slowest sender among the connections that have exceeded BODY_SECONDS.
            sending = [each for each in self._sending if not client or each.client == client]
            late = [each for each in sending if each.seconds_of_body() > BODY_SECONDS]
            connection = min(late, key=lambda each: each.body_bytes / each.seconds_of_body(), default=None)
        if connection is None:
            return False
        self.seldom.say("web.waiting_connections_closed", client=connection.client, limit=self.most_of_one)
        self.leave(connection)
        connection.end()
        return True


class Connection(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no type hints
    """One of gunicorn's client connections, with a timeout for every wait."""

    def __init__(self, worker: Any) -> None:
        super().__init__(worker)
        self.client = ""
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._body_since = self._body_until = 0.0
        self.body_bytes = 0

    @property
    def connections(self) -> Connections:
        connections: Connections = self.worker.connections
        return connections

    def connection_made(self, transport: Any) -> None:
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        # Clients behind a proxy are counted per request; see config/handler.py.
        self.client = "" if is_proxy(address) else origin_of_address(address)
        if not self.connections.admit(self):
            # This connection was never counted, so mark it as already cleaned up.
            self._conn_lost_handled = self._closed = True
            transport.abort()
            return
        # A peer that loses its network never closes the connection, so enable keep-alive and a timeout for
        # unacknowledged data.
        peer_socket = transport.get_extra_info("socket")
        if peer_socket is not None and peer_socket.family in (socket.AF_INET, socket.AF_INET6):
            peer_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(WRITE_SECONDS * 1000))
        super().connection_made(transport)
        self.connections.waits(self)
        message = f"The request headers did not arrive within {HEADER_SECONDS:.0f} s."
        self._set_timer(HEADER_SECONDS, partial(self._time_out, message))

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.leave(self)
        self._clear_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def _on_headers_complete(self) -> Any:
        self.connections.sends(self)
        self.body_bytes = 0
        self._body_since = self.worker.loop.time()
        self._body_until = self._body_since + BODY_SECONDS
        self._set_timer(BODY_SECONDS, self._look_at_the_body)
        return super()._on_headers_complete()

    def seconds_of_body(self) -> float:
        return float(self.worker.loop.time() - self._body_since)

    def _on_body(self, chunk: bytes) -> None:
        self.body_bytes += len(chunk)
        self._body_until += len(chunk) / BODY_BYTES_PER_SECOND
        super()._on_body(chunk)

    def _on_message_complete(self) -> None:
        self.connections.has_asked(self)
        self._clear_timer()
        super()._on_message_complete()

    def _arm_keepalive_timer(self) -> None:
        # gunicorn calls this between two requests. It closes the connection itself after `keepalive` seconds.
        self.connections.waits(self)
        super()._arm_keepalive_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_at_the_answer(None)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().resume_writing()

    def end(self) -> None:
        """Close the connection at once, without answering and without sending buffered data."""
        self._clear_timer()
        self._closed = True
        if self._request_ready is not None:
            self._request_ready.set()
        if self.transport is not None:
            self.transport.abort()

    def _look_at_the_body(self) -> None:
        left = self._body_until - self.worker.loop.time()
        if left > 0:
            self._set_timer(left, self._look_at_the_body)
            return
        self._time_out(f"The request body arrived at less than {BODY_BYTES_PER_SECOND} bytes per second.")

    def _time_out(self, message: str) -> None:
        self.connections.seldom.say("web.slow_clients_closed", client=self.client, reason=message)
        # Answer only if there is a request. A browser may open a connection in advance, and would take an answer on it
        # for the answer to its next request.
        if self._current_request is not None:
            self._send_error_response(408, message)
        if self.transport.get_write_buffer_size():
            self.end()
            return
        self._close_transport()
        if self._body_receiver is not None:
            self._body_receiver.signal_disconnect()
        self._request_ready.set()

    def _look_at_the_answer(self, before: int | None) -> None:
        """Close the connection unless the buffer has shrunk since the last check."""
        size = self.transport.get_write_buffer_size()
        if before is not None and size >= before:
            self.connections.seldom.say("web.stalled_clients_closed", client=self.client)
            self.end()
            return
        self._write_timer = self.worker.loop.call_later(WRITE_SECONDS, self._look_at_the_answer, size)

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._clear_timer()
        self._timer = self.worker.loop.call_later(seconds, then)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]  # gunicorn has no type hints
    def run(self) -> None:
        self.connections = Connections(
            connections_possible(settings.ADE_CONNECTIONS), settings.ADE_CONNECTIONS_PER_CLIENT
        )
        super().run()

    def _setup_event_loop(self) -> None:
        super()._setup_event_loop()
        self.loop.set_exception_handler(self._note)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # While descriptors are short, asyncio would log this error a hundred times a second, always with a traceback.
        if isinstance(error := context.get("exception"), OSError) and "accept" in str(context.get("message", "")):
            self.connections.seldom.say("web.cannot_accept", error=error.strerror)
            return
        loop.default_exception_handler(context)


# gunicorn has no setting for its protocol class, but its worker looks up this name for each connection.
gasgi.ASGIProtocol = Connection


def connections_possible(wanted: int) -> int:
    """Return how many connections are possible with enough descriptors left for files and databases.

    Raise the process's soft limit of open files first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted * DESCRIPTORS_PER_CONNECTION + OTHER_DESCRIPTORS
    possible = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < possible:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
        soft = possible
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    fewer = max(1, (soft - OTHER_DESCRIPTORS) // DESCRIPTORS_PER_CONNECTION)
    log.warning("web.fewer_connections", wanted=wanted, possible=fewer, open_files=soft)
    return fewer
