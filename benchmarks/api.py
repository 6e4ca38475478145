"""The API part: a real gunicorn with two processes, one client with one connection, and a million runs. Lists are
requested by a program, which sees one workspace, and by people, who see several or all.
"""

import http.client
import json
import math
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks import actors, processes, report
from benchmarks.actors import ROOT
from benchmarks.databases import Postgres, Sqlite
from benchmarks.places import place

PART = "api"
START_SECONDS = 60.0
PROCESSES = 2
OUTCOMES = ("queued", "succeeded", "failed", "timed_out", "cancelled")
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
# The probability that the client requests the next page. It results in four pages on average, and sometimes many more.
GOES_ON = 0.75
# The header that a proxy sets if it terminates TLS.
HEADERS = {"X-Forwarded-Proto": "https"}
# Ranges of days, counted from the oldest runs, to which some lists are restricted.
SPANS = ((0, 1), (10, 11), (20, 30), (40, 41))


@dataclass(frozen=True)
class Sizes:
    rounds: int
    runs: int
    lists: int
    submissions: int


FULL = Sizes(rounds=3, runs=1_000_000, lists=300, submissions=200)
QUICK = Sizes(rounds=2, runs=200_000, lists=150, submissions=100)
TINY = Sizes(rounds=1, runs=2000, lists=20, submissions=5)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            if not isinstance(server, Postgres):
                # An installation with a million runs does not use SQLite, which has a single writer and a planner
                # without statistics.
                continue
            with place(server, PART, directory, WEB_CONCURRENCY=str(PROCESSES)) as here:
                seeded = here.actor.call("listed.seed", number=self.sizes.runs)
                self.say(f"{server.name}: {self.sizes.runs:,} runs to list")
                with gunicorn(here.variables, here.log) as (port, pid):
                    self._measure(f"{server.name}.api", port, seeded, pid)

    def _measure(self, on: str, port: int, seeded: dict[str, Any], web: int) -> None:
        client = Client(port, {"Authorization": f"Bearer {seeded['token']}"})
        people = [Client(port, {"Cookie": f"sessionid={session}"}) for session in seeded["sessions"]]
        first, places = seeded["places"][:1], seeded["places"]
        # Send so many requests that both web processes have answered some and have prepared their statements.
        for path in list(_lists(seeded, first, 20, random.Random(0))):  # noqa: S311  # must be reproducible
            for each in (client, *people):
                each.get(path)
        for number in range(self.sizes.rounds):
            chance = random.Random(number)  # noqa: S311  # must be reproducible
            for name, clients, where in (("list", [client], first), ("list_of_several", people, places)):
                with self._busy(f"{on}.{name}", web):
                    paths = enumerate(_lists(seeded, where, self.sizes.lists, chance))
                    lists = [took for n, path in paths for took in clients[n % len(clients)].walk(path, chance)]
                    self._add(f"{on}.{name}", lists)
            path = f"/configurations/{first[0]['configuration']}/runs"
            bodies = [{"document_id": chance.choice(first[0]["documents"])} for _ in range(self.sizes.submissions)]
            with self._busy(f"{on}.submit", web):
                self._add(f"{on}.submit", [client.timed("POST", path, body)[0] for body in bodies])
            self._add(f"{on}.queue", [client.get("/api/v1/queue")[0] for _ in range(50)])
            self.say(f"{on}: round {number + 1} of {self.sizes.rounds}")

    @contextmanager
    def _busy(self, name: str, web: int) -> Iterator[None]:
        """Measure the processor time per request of the web processes alone, which does not depend on other load."""
        before, number = _processor_seconds(web), len(self.samples.values["requests"])
        yield
        taken = sum(_processor_seconds(web).values()) - sum(before.values())
        self.samples.add(f"{name}.processor_ms", 1000 * taken / max(1, sum(self.samples.values["requests"][number:])))

    def _add(self, name: str, milliseconds: list[float]) -> None:
        ordered = sorted(milliseconds)
        self.samples.add("requests", len(ordered))
        self.samples.add(name, ordered[len(ordered) // 2])
        self.samples.add(f"{name}.p95", ordered[math.ceil(len(ordered) * 0.95) - 1])


class Caller:
    """A client that sends many requests over one connection."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = HEADERS | headers

    def asked(self, method: str, path: str, body: str | None = None, most: int = 299) -> tuple[float, bytes]:
        """Return the milliseconds until the last byte, and the body. Raise an error unless the status is from 200 to
        `most`.
        """
        began = time.perf_counter()
        try:
            answer = self._answer(method, path, body)
        except ConnectionError:
            # The server closes connections that have been idle for two seconds, so any client has to reconnect.
            self.connection.close()
            answer = self._answer(method, path, body)
        read = answer.read()
        taken = 1000 * (time.perf_counter() - began)
        if answer.status > most:
            raise RuntimeError(f"{method} {path}: {answer.status} {read[:500]!r}")
        return taken, read

    def _answer(self, method: str, path: str, body: str | None) -> http.client.HTTPResponse:
        self.connection.request(method, path, body, self.headers)
        return self.connection.getresponse()


class Client(Caller):
    def __init__(self, port: int, headers: dict[str, str]) -> None:
        super().__init__(port, headers | {"Content-Type": "application/json"})

    def get(self, path: str) -> tuple[float, Any]:
        return self.timed("GET", path)

    def walk(self, path: str, chance: random.Random) -> Iterator[float]:
        """Request the first page of a list and sometimes some of the next pages; yield the milliseconds of each
        request.
        """
        taken, found = self.get(path)
        yield taken
        while found["next"] and chance.random() < GOES_ON:
            taken, found = self.get(f"{path}&cursor={found['next']}")
            yield taken

    def timed(self, method: str, path: str, body: object = None) -> tuple[float, Any]:
        taken, read = self.asked(method, path, None if body is None else json.dumps(body))
        return taken, json.loads(read)


def _lists(seeded: dict[str, Any], places: list[dict[str, Any]], number: int, chance: random.Random) -> Iterator[str]:
    """Yield paths of lists with random combinations of filters. Filters by ID use rows of `places`."""
    since = datetime.fromisoformat(seeded["since"])
    for _ in range(number):
        asked: dict[str, Any] = {"limit": chance.choice([20, 50, 200])}
        place = chance.choice(places)
        whose = {"workspace_id": place["workspace"], "configuration_id": place["configuration"]}
        whose |= {"build_id": place["build"], "document_id": chance.choice(place["documents"])}
        for name in chance.sample(sorted(whose), chance.randint(0, 2)):
            asked[name] = whose[name]
        if chance.random() < 0.6:
            asked["outcome"] = chance.choice(OUTCOMES)
        elif chance.random() < 0.5:
            asked["status"] = chance.choice(STATUSES)
        if chance.random() < 0.4:
            first, last = chance.choice(SPANS)
            asked["created_after"] = (since + timedelta(days=first)).isoformat()
            asked["created_before"] = (since + timedelta(days=last)).isoformat()
        if chance.random() < 0.3:
            asked["order"] = "id"
        yield f"/api/v1/runs?{urlencode(asked)}"


def _processor_seconds(web: int) -> dict[int, float]:
    return {pid: processes.own_processor_seconds(pid) for pid in processes.tree(web)}


@contextmanager
def gunicorn(variables: dict[str, str], log: Path) -> Iterator[tuple[int, int]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "-c", "python:config.server", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        stdin=subprocess.DEVNULL,
        stdout=log.open("ab"),
        stderr=subprocess.STDOUT,
    )
    try:
        until = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the web did not start:\n{actors.tail(log)}")
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/api/v1/queue", headers=HEADERS)
        return connection.getresponse().status == 401
    except OSError:
        return False
