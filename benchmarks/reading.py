"""The reading part: a real worker reads a long document and short ones. The comparison is a bare pdfium loop over the
pages.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.actors import Actor, WorkerProcess, environment
from benchmarks.databases import Postgres, Sqlite
from benchmarks.engines import AS_DEPLOYED

PART = "reading"
SLOTS = 2
SHORT_PAGES = 3


@dataclass(frozen=True)
class Sizes:
    rounds: int
    pages: int
    # How many short documents are processed in a round, one after the other.
    short: int


FULL = Sizes(rounds=5, pages=1000, short=10)
QUICK = Sizes(rounds=3, pages=300, short=5)
TINY = Sizes(rounds=1, pages=30, short=1)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            server.create(PART)
            folder = directory / f"{server.name}-{PART}"
            folder.mkdir()
            variables = environment(server.url(PART), folder / "var", **AS_DEPLOYED)
            actor = Actor(variables, folder / "actor.log")
            try:
                actor.call("pages.prepare", folder=str(folder), pages=self.sizes.pages, short=SHORT_PAGES)
                self._measure(server.name, actor, folder, variables)
            finally:
                actor.stop()

    def _measure(self, on: str, actor: Actor, folder: Path, variables: dict[str, str]) -> None:
        worker = WorkerProcess(variables, f"stage={SLOTS}", folder / "worker.log", "reader")
        try:
            # Process a document now, so that the worker's readers are warm when the measurement starts.
            actor.call("pages.process", folder=str(folder), which="short")
            for number in range(self.sizes.rounds):
                self._round(on, actor, folder)
                self.samples.add(f"{on}.reading.peak", _peak_megabytes(worker.process.pid))
                self.say(f"{on}: reading round {number + 1} of {self.sizes.rounds}")
        finally:
            worker.stop()

    def _round(self, on: str, actor: Actor, folder: Path) -> None:
        self.samples.add(f"{on}.reading.bare", actor.call("pages.bare", folder=str(folder)))
        took = actor.call("pages.process", folder=str(folder), which="long")
        self.samples.add(f"{on}.reading.extract", took["extract"])
        self.samples.add(f"{on}.reading.long", took["searchable"])
        each = [
            actor.call("pages.process", folder=str(folder), which="short")["searchable"]
            for _ in range(self.sizes.short)
        ]
        self.samples.add_moments(f"{on}.reading.short", each)


def _peak_megabytes(pid: int) -> float:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1024
