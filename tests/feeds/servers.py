"""Feed servers, valid and hostile: real sockets on 127.0.0.1, with a thread for each connection.

    @pytest.fixture(autouse=True)
    def reachable(settings):
        settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]

    def test_something(server):                                 # the fixture; or: with Server() as server
        server.on("/good.xml", serving(body, etag='"1"'))       # 304 if the client sends its ETag or date
        server.on("/bomb.xml", bomb(100))                       # also nested_bomb, endless, slow_headers, trickling, …

        fetch(server.url("/good.xml"))                          # http://127.0.0.1:PORT/good.xml

        assert server.asked[0].headers["accept-encoding"]       # each request, in the order of arrival
        assert server.seconds_of("/bomb.xml")

A behaviour is a function of a Call, so a test may define its own: `server.on("/x", lambda call: call.send(b"…"))`. A
path without a behaviour is answered with 404. All of them end with the server, and tolerate clients that hang up.
"""

import gzip
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import pytest

PIECE = bytes(64 << 10)


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    at: float = field(default_factory=time.monotonic)


class Call:
    """One connection: the request, and functions to answer it."""

    def __init__(self, connection: socket.socket, ending: Event) -> None:
        self.connection, self.ending = connection, ending
        self.asked = Asked("", "", {})

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def send_slowly(self, data: bytes, every: float) -> None:
        for byte in data:
            self.wait(every)
            self.send(bytes([byte]))

    def wait(self, seconds: float | None = None) -> None:
        if self.ending.wait(seconds):
            raise OSError("the server ends")

    def until_hung_up(self) -> None:
        while self.connection.recv(65536):
            pass

    def read_request(self) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.connection.recv(65536)
            if not more:
                raise OSError("hung up before asking")
            data += more
        said, _, body = data.partition(b"\r\n\r\n")
        first, *lines = said.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            more = self.connection.recv(65536)
            if not more:
                raise OSError("hung up while asking")
            body += more
        self.asked = Asked(method, path, headers, body)


Behaviour = Callable[[Call], None]


class Server:
    """Runs `instead` on each connection, if given, before anything is read, and nothing after it."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext | None = None,
        instead: Behaviour | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._context, self._instead = context, instead
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._host, self.port = f"[{host}]" if ":" in host else host, port
        self._behaviours: dict[str, Behaviour] = {}
        self._ending = Event()
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[Thread] = []
        self._seconds: dict[str, float] = {}
        self.asked: list[Asked] = []
        self.connections = 0

    def __enter__(self) -> "Server":
        self._listener = socket.create_server((self._host.strip("[]"), self.port), family=self._family, backlog=512)
        self.port = self._listener.getsockname()[1]
        self._acceptor = Thread(target=self._accept, daemon=True)
        self._acceptor.start()
        return self

    def __exit__(self, *error) -> None:
        self._ending.set()
        # Closing the socket alone does not wake up a thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def on(self, path: str, behaviour: Behaviour) -> str:
        self._behaviours[path] = behaviour
        return self.url(path)

    def url(self, path: str = "/", host: str = "") -> str:
        return f"{'https' if self._context else 'http'}://{host or self._host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def is_busy(self) -> bool:
        with self._lock:
            return bool(self._open)

    def seconds_of(self, path: str) -> float:
        """Return how long the last connection to this path was open."""
        return self._seconds[path]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = Thread(target=self._serve, args=[connection], daemon=True)
            with self._lock:
                self.connections += 1
                self._open.add(connection)
                self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        began = time.monotonic()
        call = Call(plain, self._ending)
        try:
            # Tests cover clients that hang up or reject our certificate.
            with suppress(OSError):
                self._talk(call)
        finally:
            self._seconds[call.asked.path] = time.monotonic() - began
            with self._lock:
                self._open.discard(plain)
            with suppress(OSError):
                call.connection.close()
            plain.close()

    def _talk(self, call: Call) -> None:
        if self._instead:
            self._instead(call)
            return
        if self._context:
            call.connection = self._context.wrap_socket(call.connection, server_side=True)
        call.read_request()
        self.asked.append(call.asked)
        self._behaviours.get(call.asked.path.split("?")[0], failing(404))(call)


@pytest.fixture
def server():
    with Server() as server:
        yield server


def head(status: int = 200, **headers: Any) -> bytes:
    """Return the head without the empty line. Header names are written with underscores."""
    lines = [f"HTTP/1.1 {status} Word", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n"


def answering(body: bytes = b"", status: int = 200, **headers: Any) -> Behaviour:
    def behaviour(call: Call) -> None:
        call.send(head(status, **{"Content_Length": len(body), **headers}) + b"\r\n" + body)

    return behaviour


def serving(body: bytes, *, etag: str = "", last_modified: str = "", coding: str = "", **headers: Any) -> Behaviour:
    """Serve a valid feed; `coding` is gzip or deflate."""
    if coding:
        body = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
        headers["Content_Encoding"] = coding
    said: dict[str, Any] = {name: value for name, value in (("ETag", etag), ("Last_Modified", last_modified)) if value}

    def behaviour(call: Call) -> None:
        if _knows(call.asked.headers, etag, last_modified):
            answering(status=304, **said)(call)
        else:
            answering(body, **{"Content_Type": "application/rss+xml", **said, **headers})(call)

    return behaviour


def failing(status: int, **headers: Any) -> Behaviour:
    return answering(b"no feed", status, **headers)


def redirecting(to: str, status: int = 302) -> Behaviour:
    return answering(status=status, Location=to.encode().decode("latin-1"))


def saying(data: bytes) -> Behaviour:
    """Send exactly these bytes, and then nothing more."""
    return lambda call: call.send(data)


def silent(call: Call) -> None:
    call.wait()


def slow_headers(every: float = 0.05) -> Behaviour:
    """Send one byte at a time, so that no single read times out."""
    return lambda call: call.send_slowly(head(X_Slow="a" * 100_000), every)


def trickling(body: bytes, every: float = 0.05) -> Behaviour:
    def behaviour(call: Call) -> None:
        call.send(head(Content_Length=len(body)) + b"\r\n")
        call.send_slowly(body, every)

    return behaviour


def endless(call: Call) -> None:
    """Send chunks as fast as the client reads them."""
    call.send(head(Transfer_Encoding="chunked") + b"\r\n")
    while True:
        call.wait(0)
        call.send(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))


def endless_headers(call: Call) -> None:
    call.send(head())
    while True:
        call.wait(0)
        call.send(b"X-Again: and again\r\n" * 1000)


def endless_hints(call: Call) -> None:
    while True:
        call.wait(0)
        call.send(b"HTTP/1.1 103 Early Hints\r\nLink: </again>\r\n\r\n" * 1000)


def bomb(megabytes: int, coding: str = "gzip") -> Behaviour:
    return answering(_zeros(megabytes, coding), Content_Encoding=coding)


def nested_bomb(megabytes: int) -> Behaviour:
    return answering(gzip.compress(_zeros(megabytes, "gzip")), Content_Encoding="gzip, gzip")


def endless_bomb(call: Call) -> None:
    """Send data that unpacks to a thousand times its size."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    call.send(head(Content_Encoding="gzip") + b"\r\n")
    while True:
        call.wait(0)
        call.send(packer.compress(PIECE))


def cut_off(body: bytes, missing: int = 100) -> Behaviour:
    """Announce more bytes than are sent."""
    return answering(body, Content_Length=len(body) + missing)


def resetting(body: bytes = b"") -> Behaviour:
    """Reset the connection in the middle of the body, instead of closing it."""

    def behaviour(call: Call) -> None:
        call.send(head(Content_Length=len(body) + 100) + b"\r\n" + body)
        call.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return behaviour


def half_closed(body: bytes) -> Behaviour:
    """Send the body without a length and shut down the sending side, but keep reading."""

    def behaviour(call: Call) -> None:
        call.send(head() + b"\r\n" + body)
        call.connection.shutdown(socket.SHUT_WR)
        call.until_hung_up()

    return behaviour


def _knows(headers: dict[str, str], etag: str, last_modified: str) -> bool:
    """Return whether the client has the current version; an ETag takes precedence over a date."""
    if "if-none-match" in headers:
        return headers["if-none-match"] == etag
    return bool(last_modified) and headers.get("if-modified-since") == last_modified


def _zeros(megabytes: int, coding: str) -> bytes:
    packer = zlib.compressobj(wbits=(16 if coding == "gzip" else 0) + zlib.MAX_WBITS)
    return b"".join(packer.compress(PIECE) for _ in range(megabytes * 16)) + packer.flush()
