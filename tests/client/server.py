"""A server on a real socket that answers what a test specifies."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    def __init__(self):
        self.script, self.asked = [], []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.asked.append((self.command, self.path, dict(self.headers), body))
                server.script.pop(0)(self)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def end(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def says(status, body=b"{}", **headers):
    def say(handler):
        handler.send_response(status)
        for name, value in ({"Content_Length": len(body)} | headers).items():
            handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.wfile.write(body)

    return say


def hangs_up(handler):
    """Close the connection without an answer: the client cannot know whether the request was executed."""
    handler.close_connection = True


def streams(text):
    """Send a stream that breaks off after this text."""

    def stream(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(text.encode())

    return stream
