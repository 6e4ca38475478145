"""The streams part: many open streams on a real gunicorn with two web processes, which also answers other requests."""

import asyncio
import http.client
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import processes, report
from benchmarks.actors import ROOT, Actor, tail
from benchmarks.databases import Postgres, Sqlite
from benchmarks.places import WITHOUT_PROXY, place

PART = "streams"
WEB_PROCESSES = 2
START_SECONDS = 60.0
# How many streams are opened at the same time. Each holds a database connection until it has begun.
OPENING = 10
EVENT_GAP_SECONDS, PAGE_GAP_SECONDS = 0.1, 0.05
PAGES = ("/api/v1/runs", "/admin/login/")
_NUMBER = re.compile(rb'"message":"event (\d+)\."')


@dataclass(frozen=True)
class Sizes:
    rounds: int
    streams: int
    # How many streams are open while the idle cost is measured, and for how long.
    idle: int
    idle_seconds: float
    events: int


FULL = Sizes(rounds=5, streams=300, idle=50, idle_seconds=20, events=100)
QUICK = Sizes(rounds=3, streams=300, idle=50, idle_seconds=10, events=50)
TINY = Sizes(rounds=1, streams=10, idle=5, idle_seconds=1, events=5)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            with place(server, PART, directory, **WITHOUT_PROXY) as here:
                given = here.actor.call("told.prepare", streams=self.sizes.streams)
                for number in range(self.sizes.rounds):
                    self._round(f"{server.name}.streams", here.actor, Web(here.variables, here.log), given)
                    self.say(f"{server.name}: streams round {number + 1} of {self.sizes.rounds}")

    def _round(self, name: str, actor: Actor, web: "Web", given: dict[str, Any]) -> None:
        try:
            readers = Readers(web.port, given["path"], given["tokens"])
            asyncio.run(self._measure(name, actor, web, readers))
        finally:
            web.stop()

    async def _measure(self, name: str, actor: Actor, web: "Web", readers: "Readers") -> None:
        await readers.open(self.sizes.idle)
        before = web.processor_seconds()
        await asyncio.sleep(self.sizes.idle_seconds)
        self.samples.add(f"{name}.idle", 100 * (web.processor_seconds() - before) / self.sizes.idle_seconds)
        await readers.open(self.sizes.streams - self.sizes.idle)
        before = web.processor_seconds()
        actor.begin("told.tell", number=self.sizes.events, gap=EVENT_GAP_SECONDS)
        told = asyncio.create_task(asyncio.to_thread(actor.answer))
        pages = await asyncio.to_thread(web.ask, readers.tokens[0], told.done)
        committed = await told
        await readers.until(self.sizes.streams * self.sizes.events)
        each = (web.processor_seconds() - before) / len(readers.read)
        self.samples.add(f"{name}.processor_us", 1e6 * each)
        delays = [1000 * (at - committed[n]) for n, at in readers.read]
        self.samples.add_moments(f"{name}.delay", delays)
        self.samples.add(f"{name}.delay.p95", _p95(delays))
        for path, taken in pages.items():
            self.samples.add(f"{name}.{path}", 1000 * sorted(taken)[len(taken) // 2])
            self.samples.add(f"{name}.{path}.p95", 1000 * _p95(taken))
        self.samples.add(f"{name}.pss", processes.proportional_bytes(web.pids) / 1e6)
        self.samples.add(f"{name}.rss", sum(map(processes.resident_bytes, web.pids)) / 1e6)
        await readers.close()


class Web:
    def __init__(self, variables: dict[str, str], log: Path) -> None:
        self.log = log
        with closing(socket.socket()) as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        arguments = ["-m", "gunicorn", "-c", "python:config.server", "--bind", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=variables | {"WEB_CONCURRENCY": str(WEB_PROCESSES)},
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )
        until = time.monotonic() + START_SECONDS
        # Send several requests, so that both processes have answered.
        while not all(self._answers() for _ in range(5 * WEB_PROCESSES)):
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"the web did not start:\n{tail(log)}")
            time.sleep(0.1)
        self.pids = processes.tree(self.process.pid)[1:]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(START_SECONDS)

    def processor_seconds(self) -> float:
        return sum(map(processes.own_processor_seconds, self.pids))

    def ask(self, token: str, done: Callable[[], bool]) -> dict[str, list[float]]:
        """Request the pages in turn until `done`. Return the milliseconds of each request by page."""
        taken: dict[str, list[float]] = {path: [] for path in PAGES}
        while not done():
            for path in PAGES:
                began = time.monotonic()
                assert self._get(path, token) == 200, path
                taken[path].append(time.monotonic() - began)
                time.sleep(PAGE_GAP_SECONDS)
        return taken

    def _answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self._get("/admin/login/", "") == 200
        return False

    def _get(self, path: str, token: str) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)) as caller:
            caller.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = caller.getresponse()
            response.read()
            return response.status


class Readers:
    def __init__(self, port: int, path: str, tokens: list[str]) -> None:
        self.port, self.path, self.tokens = port, path, tokens
        # For each event that a stream has read: the event's number, and the moment.
        self.read: list[tuple[int, float]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, number: int) -> None:
        gate = asyncio.Semaphore(OPENING)
        await asyncio.gather(*(self._open(gate, self.tokens[n % len(self.tokens)]) for n in range(number)))

    async def _open(self, gate: asyncio.Semaphore, token: str) -> None:
        async with gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            ask = f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
            writer.write(ask.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise RuntimeError(head.decode())
            # Wait for the position, which the stream sends once it has begun.
            await reader.readuntil(b"\nid: ") if b"id: " not in head else None
        self._tasks.append(asyncio.create_task(self._follow(reader, writer)))

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while part := await reader.read(1 << 16):
                now = time.monotonic()
                self.read += [(int(number), now) for number in _NUMBER.findall(part)]

    async def until(self, number: int) -> None:
        async with asyncio.timeout(START_SECONDS):
            while len(self.read) < number:
                await asyncio.sleep(0.05)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _p95(moments: list[float]) -> float:
    return sorted(moments)[int(len(moments) * 0.95)]
