"""Fake services on their own ports, which answer correctly unless a test sets faults for their next requests."""

import json
import socket
import struct
import threading
import zlib
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PIECE = b"a" * (1 << 20)


@dataclass
class Asked:
    what: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Service:
    """Records requests in `asked`; `then` sets the faults of the next requests of a kind."""

    def __init__(self):
        self.asked, self._faults, self._always = [], defaultdict(deque), {}
        self.ending, self.answered = threading.Event(), defaultdict(int)
        self._server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"service": self}))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True)
        self._thread.start()

    def then(self, what, *faults):
        self._faults[what].extend(faults)

    def always(self, what, fault):
        self._always[what] = fault

    def behave(self):
        self._faults.clear()
        self._always.clear()

    def count(self, what):
        return sum(each.what == what for each in self.asked)

    def fault(self, what):
        waiting = self._faults[what]
        return waiting.popleft() if waiting else self._always.get(what)

    def end(self):
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, asked):
        """Return the kind of the request, and a function that returns its answer: status, headers, body."""
        raise NotImplementedError


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignore clients that hang up: the tests provoke that."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None

    def do_GET(self):
        self._serve()

    def do_POST(self):
        self._serve()

    def log_message(self, *arguments):
        pass

    def _serve(self):
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(
            "", parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}, headers, body
        )
        asked.what, answer = self.service.handle(asked)
        self.service.asked.append(asked)
        fault = self.service.fault(asked.what)
        with suppress(ConnectionError):
            if fault is None:
                self.answer(*answer())
            else:
                fault(self, answer)
        self.service.answered[asked.what] += 1

    def answer(self, status, headers, body):
        self.begin(status, len(body), headers)
        self.wfile.write(body)

    def begin(self, status, length, headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(length))
        self.end_headers()


# Faults: functions that replace an answer; they receive a function that returns the right one.


def says(status, body=b"", **headers):
    """Answer with this status; header names are keywords."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, answer: handler.answer(status, named, data)


def changed(change):
    """Answer with the right body as modified by `change`."""

    def fault(handler, answer):
        status, headers, body = answer()
        handler.answer(status, headers, change(body))

    return fault


def hangs(handler, answer):
    handler.service.ending.wait()


def drips(handler, answer):
    """Send single bytes without end, often enough that no read timeout applies."""
    handler.begin(200, 1 << 20, {})
    while not handler.service.ending.wait(0.1):
        handler.wfile.write(b" ")


def hangs_up(handler, answer):
    """Reset the connection instead of closing it."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def cut_off(handler, answer):
    status, headers, body = answer()
    handler.begin(status, len(body), headers)
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def goes_on(megabytes=200):
    def fault(handler, answer):
        handler.begin(200, megabytes << 20, {})
        for _ in range(megabytes):
            handler.wfile.write(PIECE)

    return fault


def unpacks_to(megabytes=4000):
    """Send a few MB that unpack to some GB: the same piece many times."""
    packer = zlib.compressobj(9, wbits=31)
    first, next = (packer.compress(PIECE) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return lambda handler, answer: handler.answer(200, {"Content-Encoding": "gzip"}, first + next * megabytes)


def waits_for(event):
    """Send the right answer after the event."""

    def fault(handler, answer):
        event.wait(60)
        handler.answer(*answer())

    return fault
