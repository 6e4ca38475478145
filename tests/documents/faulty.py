"""Blob services that fail: real servers on this machine, each with its own kind of failure."""

import socket
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from tests.azurite import ACCOUNT


@contextmanager
def refusing():
    """Yield an address at which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    yield f"http://127.0.0.1:{port}/{ACCOUNT}"


@contextmanager
def hanging():
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/{ACCOUNT}"


class Gate:
    """A proxy for a real service that forwards requests unless `fault` returns a status or "break"."""

    def __init__(self, endpoint=None):
        self.endpoint = endpoint
        self.fault = lambda method, path: 500
        self.seen = []

    def __enter__(self):
        handler = type("Handler", (_Handler,), {"gate": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/{ACCOUNT}"
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.gate.seen.append((self.command, self.path))
        fault = self.gate.fault(self.command, self.path)
        if fault == "break":
            self._answer(200, [("Content-Length", "1000"), ("Content-Range", "bytes 0-999/1000")], b"only this")
            self.close_connection = True
        elif fault:
            self._answer(fault, [("x-ms-error-code", "InternalError"), ("Content-Length", "0")], b"")
        else:
            self._pass_on(body)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_any

    def log_message(self, *arguments):
        pass

    def _pass_on(self, body):
        behind = HTTPConnection(urlsplit(self.gate.endpoint).netloc)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        data = answer.read()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() != "transfer-encoding"]
        if not any(name.lower() == "content-length" for name, _ in kept):
            kept.append(("Content-Length", str(len(data))))
        self._answer(answer.status, kept, data)
        behind.close()

    def _answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def failing():
    with Gate() as gate:
        yield gate.address


WAYS = {"refuses": refusing, "hangs": hanging, "fails": failing}
