"""The live pages part: many pages are open on a real gunicorn with two web processes, and one of the pages changes.

The clients do what a browser does: when a stream sends news, they request the page again, at most four times a second.
See `templates/console/base.html`.
"""

import asyncio
import http.client
import random
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.actors import Actor
from benchmarks.databases import Postgres, Sqlite
from benchmarks.places import WITHOUT_PROXY, place
from benchmarks.streams import OPENING, START_SECONDS, Web

PART = "live"
# A page requests its content at most once in this time.
THROTTLE_SECONDS = 0.25
STATES = ("queued", "running", "succeeded")
_STATE = re.compile(r'<p class="lead"><span class="state [^"]*">.*?(queued|running|succeeded)</span>', re.DOTALL)
# Shortest and longest time between the two changes of a run, which may be shorter or longer than the throttle.
GAPS = (0.05, 0.6)
NEWS = b"event: news\n"
# Wait this long without events before measuring the cost of idle pages.
QUIET_SECONDS = 6.0


@dataclass(frozen=True)
class Sizes:
    rounds: int
    viewers: int
    idle_seconds: float
    runs: int


FULL = Sizes(rounds=3, viewers=50, idle_seconds=30, runs=50)
QUICK = Sizes(rounds=2, viewers=50, idle_seconds=20, runs=25)
TINY = Sizes(rounds=1, viewers=5, idle_seconds=1, runs=2)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            with place(server, PART, directory, **WITHOUT_PROXY) as here:
                looked_at = self.sizes.rounds * self.sizes.runs
                given = here.actor.call("told.prepare_looks", number=looked_at + self.sizes.viewers)
                for number in range(self.sizes.rounds):
                    web = Web(here.variables, here.log)
                    try:
                        first = number * self.sizes.runs
                        runs = given["runs"][first : first + self.sizes.runs]
                        others = given["runs"][looked_at:]
                        asyncio.run(self._round(f"{server.name}.live", here.actor, web, given["session"], runs, others))
                    finally:
                        web.stop()
                    self.say(f"{server.name}: live pages round {number + 1} of {self.sizes.rounds}")

    async def _round(self, name: str, actor: Actor, web: Web, session: str, runs: list[int], others: list[int]) -> None:
        person = _Person(web.port, session)
        await self._idle(f"{name}.idle", web, person)
        # Each client watches the page of a different run. One more client, in `look_at`, watches the page that changes.
        watching = await person.open_all([f"/live/run/{id}/" for id in others[:-1]])
        told: list[float] = []
        shown: list[float] = []
        for id in runs:
            committed, heard, seen = await person.look_at(id, actor)
            told += [1000 * (at - since) for since, at in zip(committed, heard, strict=True)]
            shown += [1000 * (at - since) for since, at in zip(committed, seen, strict=True)]
        await _close(watching)
        for what, moments in (("told", told), ("shown", shown)):
            self.samples.add_moments(f"{name}.{what}", moments)
            self.samples.add(f"{name}.{what}.p95", sorted(moments)[int(len(moments) * 0.95)])

    async def _idle(self, name: str, web: Web, person: "_Person") -> None:
        """Measure idle pages that follow all events, because those pages cost the most."""
        watching = await person.open_all(["/live/"] * self.sizes.viewers)
        await asyncio.sleep(min(QUIET_SECONDS, self.sizes.idle_seconds))
        before, began = web.processor_seconds(), time.monotonic()
        await asyncio.sleep(self.sizes.idle_seconds)
        self.samples.add(name, 100 * (web.processor_seconds() - before) / (time.monotonic() - began))
        await _close(watching)


class _Person:
    def __init__(self, port: int, session: str) -> None:
        self.port, self.headers = port, {"Cookie": f"sessionid={session}"}

    async def open_all(self, paths: list[str]) -> list[asyncio.Task[None]]:
        gate = asyncio.Semaphore(OPENING)

        async def opened(path: str) -> asyncio.Task[None]:
            async with gate:
                return asyncio.create_task(_drop(*await self._open(path)))

        return list(await asyncio.gather(*map(opened, paths)))

    async def look_at(self, id: int, actor: Actor) -> tuple[list[float], list[float], list[float]]:
        """Return the moments at which the changes were committed, reported by the stream, and shown by the page."""
        page = await asyncio.to_thread(self._state_on, f"/runs/{id}/")
        assert page == STATES[0], page
        reader, writer = await self._open(f"/live/run/{id}/")
        # A person looks at the page for a while before the run changes.
        await asyncio.sleep(random.uniform(*GAPS))  # noqa: S311  # no secret
        actor.begin("told.run_next", gap=random.uniform(*GAPS))  # noqa: S311  # no secret
        news: list[float] = []
        listening = asyncio.create_task(_listen(reader, writer, news))
        seen = await self._follow(f"/runs/{id}/", news)
        committed = await asyncio.to_thread(actor.answer)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        # Take the first news after each change, because one change may cause several.
        heard = [next(at for at in [*news, seen[-1]] if at >= since) for since in committed]
        return committed, heard, seen

    async def _follow(self, path: str, news: list[float]) -> list[float]:
        """Request the page after each news until it has shown all changes. Return the moment of each."""
        seen: list[float] = []
        asked_at, heard = float("-inf"), 0
        async with asyncio.timeout(START_SECONDS):
            while len(seen) < len(STATES) - 1:
                if len(news) == heard or time.monotonic() < asked_at + THROTTLE_SECONDS:
                    await asyncio.sleep(0.001)
                    continue
                heard, asked_at = len(news), time.monotonic()
                state = await asyncio.to_thread(self._state_on, path)
                now = time.monotonic()
                seen += [now] * (STATES.index(state) - len(seen))
        return seen

    def _state_on(self, path: str) -> str:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)) as browser:
            browser.request("GET", path, headers=self.headers)
            answer = browser.getresponse()
            read = answer.read().decode()
        found = _STATE.search(read)
        if answer.status != 200 or not found:
            raise RuntimeError(f"GET {path}: {answer.status} {read[:500]}")
        return found[1]

    async def _open(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a stream and wait for the first news, which comes at once, in case something changed between loading the
        page and opening the stream.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())
        await reader.readuntil(NEWS)
        return reader, writer


async def _listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, news: list[float]) -> None:
    with closing(writer):
        while True:
            await reader.readuntil(NEWS)
            news.append(time.monotonic())


async def _drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer):
        while await reader.read(1 << 16):
            pass


async def _close(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
