"""Clients of streams: one calls the application directly on an event loop of the test, and one uses the network."""

import asyncio
import http.client
import json
import socket
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from django.db import connection

from config.handler import Handler
from tests.processes import START_SECONDS
from tests.stepping import DEADLINE_SECONDS, until


@dataclass
class Message:
    event: str
    data: Any
    id: str


@dataclass
class Read:
    """Parses lines as an EventSource does."""

    messages: list[Message] = field(default_factory=list)
    comments: int = 0
    retry: int | None = None
    last_id: str = ""
    _event: str = ""
    _data: list[str] = field(default_factory=list)

    def take(self, line):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if self._data:
                self.messages.append(Message(self._event or "message", json.loads("\n".join(self._data)), self.last_id))
            self._event, self._data = "", []
        elif line.startswith(":"):
            self.comments += 1
        elif name == "id":
            self.last_id = value
        elif name == "retry":
            self.retry = int(value)
        elif name == "event":
            self._event = value
        else:
            assert name == "data", line
            self._data.append(value)

    @property
    def events(self):
        return [message.data for message in self.messages if message.event == "message"]

    @property
    def kinds(self):
        return [event["kind"] for event in self.events]

    @property
    def said(self):
        """Return the events that the stream has sent about itself."""
        return [(message.event, message.data["reason"]) for message in self.messages if message.event != "message"]


async def in_thread(act):
    """Run `act` in a thread with its own connection, as another process would."""

    def do():
        try:
            return act()
        finally:
            connection.close()

    return await asyncio.to_thread(do)


class Called(Read):
    def __init__(self):
        super().__init__()
        self.status, self.headers, self.body, self.is_over = None, {}, b"", False
        self.gone = asyncio.Event()
        # While this is clear, the client reads nothing more.
        self.takes = asyncio.Event()
        self.takes.set()
        self._asked, self._rest, self._news = False, "", asyncio.Event()

    async def receive(self):
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        await self.takes.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")
            self.is_over = not message.get("more_body", False)
            if self.status == 200:
                *lines, self._rest = (self._rest + message.get("body", b"").decode()).split("\n")
                for line in lines:
                    self.take(line)
        self._news.set()

    async def until(self, condition):
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def until_over(self):
        await self.until(lambda self: self.is_over)


@asynccontextmanager
async def opened(path, token="", last_event_id=None, query="", **headers):
    """Open a stream through the whole ASGI application."""
    headers = {"Host": "localhost", **headers}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
    }
    called = Called()
    task = asyncio.create_task(Handler()(scope, called.receive, called.send))
    try:
        await called.until(lambda called: called.status)
        if called.status != 200:
            await called.until_over()
        yield called
    finally:
        called.takes.set()
        called.gone.set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await task


def free_port():
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Served:
    """A real gunicorn on the database of the test."""

    def __init__(self, programs, web_processes=2, **environment):
        self.port = free_port()
        arguments = ["-m", "gunicorn", "-c", "python:tests.api.hurried", "--bind", f"127.0.0.1:{self.port}"]
        self.program = programs.start(*arguments, WEB_CONCURRENCY=web_processes, **environment)
        self.followed = []
        until(self._answers, START_SECONDS, every=0.1)

    def _answers(self):
        assert self.program.is_alive(), self.program.logged()
        with suppress(OSError, http.client.HTTPException):
            return self.get("/admin/login/")[0] == 200
        return False

    def get(self, path, token=""):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)) as caller:
            caller.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = caller.getresponse()
            return response.status, response.read()

    def follow(self, path, token, **headers):
        self.followed.append(Followed(self.port, path, {"Authorization": f"Bearer {token}"} | headers))
        return self.followed[-1]

    def close(self):
        for stream in self.followed:
            stream.close()


class Followed(Read):
    """A stream that is read in its own thread."""

    def __init__(self, port, path, headers):
        super().__init__()
        self._caller = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
        self._caller.request("GET", path, headers=headers)
        self._socket = self._caller.sock
        self._response = self._caller.getresponse()
        self.status, self.headers = self._response.status, self._response.headers
        self.is_over = False
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while line := self._response.readline():
                self.take(line.decode().rstrip("\n"))
        self.is_over = True

    def close(self):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(DEADLINE_SECONDS)
        self._response.close()
        self._caller.close()
        self._socket.close()
