"""The console part: people who see several workspaces or all of them request every page, with a million runs and ten
million events.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.api import PROCESSES, Caller, gunicorn
from benchmarks.databases import Postgres, Sqlite
from benchmarks.places import place

PART = "console"
# Events per run, as if each run was queued, started, executed a step or two, printed something, and ended.
EVENTS_EACH = 10


@dataclass(frozen=True)
class Sizes:
    rounds: int
    runs: int
    asked: int


FULL = Sizes(rounds=3, runs=1_000_000, asked=40)
QUICK = Sizes(rounds=2, runs=200_000, asked=20)
TINY = Sizes(rounds=1, runs=2000, asked=3)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            if not isinstance(server, Postgres):
                # An installation with a million runs does not use SQLite.
                continue
            with place(server, PART, directory, WEB_CONCURRENCY=str(PROCESSES)) as here:
                seeded = here.actor.call("listed.seed", number=self.sizes.runs)
                number = here.actor.call("listed.tell", each=EVENTS_EACH)
                here.actor.call("listed.dress")
                self.say(f"{server.name}: {self.sizes.runs:,} runs and {number:,} events to look at")
                with gunicorn(here.variables, here.log) as (port, _):
                    self._measure(f"{server.name}.console", port, seeded)

    def _measure(self, on: str, port: int, seeded: dict[str, Any]) -> None:
        people = [_Browser(port, session) for session in seeded["sessions"]]
        pages = _pages(seeded)
        for path in pages.values():
            # Send so many requests that both web processes have prepared their statements and templates.
            for person in people * 4:
                person.get(path)
        for number in range(self.sizes.rounds):
            for name, path in pages.items():
                asked = people * (self.sizes.asked // len(people) + 1)
                taken = sorted(person.get(path) for person in asked)
                self.samples.add(f"{on}.{name}", taken[len(taken) // 2])
                self.samples.add(f"{on}.{name}.p95", taken[math.ceil(len(taken) * 0.95) - 1])
            self.say(f"{on}: round {number + 1} of {self.sizes.rounds}")


class _Browser(Caller):
    def __init__(self, port: int, session: str) -> None:
        super().__init__(port, {"Cookie": f"sessionid={session}"})

    def get(self, path: str) -> float:
        """Request a page and return the milliseconds. A redirect counts as a failure."""
        taken, _ = self.asked("GET", path, most=200)
        return taken


def _pages(seeded: dict[str, Any]) -> dict[str, str]:
    place = seeded["places"][0]
    run, document, build = seeded["run"], place["documents"][0], place["build"]
    return {
        "now": "/",
        "news": "/news/",
        "runs": "/runs/",
        "failed": "/runs/?outcome=failed",
        "deep": f"/runs/?before={run}",
        "of_document": f"/runs/?document={document}",
        "run": f"/runs/{run}/",
        "log": f"/runs/{run}/log/?q=words",
        "compare": f"/runs/{run}/compare/",
        "documents": "/documents/",
        "document": f"/documents/{document}/",
        "builds": "/builds/",
        "build": f"/builds/{build}/",
        "failures": "/failures/",
        "jobs": "/jobs/",
        "job": "/jobs/rss_ingestion/",
        "feeds": "/feeds/",
        "clusters": "/clusters/",
        "workers": "/workers/",
        "promises": "/promises/",
        "late_writes": "/late-writes/",
        "admin": "/admin/",
        "admin_runs": "/admin/runs/run/",
        "admin_failed": "/admin/runs/run/?outcome=failed",
        "admin_run": f"/admin/runs/run/{run}/change/",
        "admin_documents": "/admin/documents/document/",
    }


PAGES = tuple(_pages({"places": [{"documents": [1], "build": 1}], "run": 1}))
