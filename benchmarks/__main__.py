"""Measure ADE against its goals: `make bench`, or `python -m benchmarks [--quick] [--only PART] [--database NAME]`.

Every goal is a ratio of two things measured alternately in each round; a figure is the median of all rounds. The runs
themselves do nothing, so that only ADE's own work is measured. The engine part (`--only engines`, or one of its parts)
runs real engines: see `benchmarks/engines.py`.
"""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import (
    api,
    console,
    databases,
    engines,
    feeds,
    goals,
    live,
    reading,
    report,
    search,
    streams,
    tables,
    understanding,
)
from benchmarks.actors import Actor, WorkerProcess, tail
from benchmarks.databases import World
from tools.with_postgres import SIGNALS, leave

PARTS = ("drain", "history", "busy", "unready", "open", "submit", "pickup", "workers")
# Each module is one part of the benchmark, with a class `Sizes` and a class `Bench`. The parts are measured in this
# order.
MODULES: tuple[Any, ...] = (search, reading, feeds, api, streams, console, live)
# These parts measure how well the documents of a folder are understood.
OF_DATA = (understanding.PART, tables.PART)
# For each of these parts, the state in which it needs a database, in addition to the plain one.
STATES = {"history": "history", "busy": "busy", "unready": "unready", "open": "open"}
DRAINS = ("drain", *STATES)
# These states use the documents with lower numbers; drains use the documents from this number on.
OF_STATES = 1001
# Each variant is measured for this long before it is the next variant's turn, so that a slow second of the disk or of
# other programs affects all variants.
SLICE_SECONDS = 0.25
# A worker must empty the queue within this time.
LONGEST_DRAIN_SECONDS = 60.0
# A worker must start within this time.
START_SECONDS = 30.0


@dataclass(frozen=True)
class Sizes:
    rounds: int
    slices: int
    # Must be more runs than can finish in all slices together.
    drain: int
    history: int
    backlog: int
    each: int
    together: int
    pickups: int


FULL = Sizes(rounds=5, slices=8, drain=8000, history=1_000_000, backlog=100_000, each=200, together=1000, pickups=50)
QUICK = Sizes(rounds=3, slices=4, drain=4000, history=100_000, backlog=20_000, each=100, together=1000, pickups=30)
TINY = Sizes(rounds=1, slices=1, drain=200, history=100, backlog=50, each=5, together=10, pickups=2)


class Bench:
    def __init__(self, sizes: Sizes, parts: list[str], say: Callable[[str], None]) -> None:
        self.sizes, self.parts, self.say = sizes, parts, say
        self.samples = report.Samples()
        self.worlds: list[World] = []

    def run(self, servers: list["databases.Postgres | databases.Sqlite"], directory: Path) -> None:
        try:
            for server in servers:
                self._prepare(server, directory)
            for number in range(self.sizes.rounds):
                self._round(number, servers)
                self.say(f"round {number + 1} of {self.sizes.rounds}")
        finally:
            for world in self.worlds:
                world.stop()

    def _prepare(self, server: "databases.Postgres | databases.Sqlite", directory: Path) -> None:
        began = time.monotonic()
        ways: dict[str, Callable[[Actor], None]] = {
            "history": lambda actor: actor.call("rows.history", number=self.sizes.history),
            "busy": lambda actor: actor.call("rows.busy", number=self.sizes.backlog),
            "unready": lambda actor: actor.call("rows.unready", number=self.sizes.backlog),
            "open": self._open,
        }
        states = {STATES[part]: ways[STATES[part]] for part in self.parts if part in STATES}
        # The documents below OF_STATES belong to the states.
        documents = OF_STATES + max(self.sizes.drain, self.sizes.together * 4, self.sizes.each * 4)
        self.worlds += databases.worlds(server, directory, documents, states).values()
        self.say(f"{server.name}: ready after {time.monotonic() - began:.0f} s")

    def _open(self, actor: Actor) -> None:
        actor.call("rows.busy", number=self.sizes.backlog)
        actor.call("rows.open_all_gates")

    def _round(self, number: int, servers: list["databases.Postgres | databases.Sqlite"]) -> None:
        if set(DRAINS) & set(self.parts):
            self._drains()
        for world in self.worlds:
            if world.name != "plain":
                continue
            if "submit" in self.parts:
                self._submit(world)
            if "pickup" in self.parts:
                self._pick_up(world)
            if "workers" in self.parts:
                # Alternate the order of the two variants, so that neither is always measured last.
                for processes, slots in ((2, 1), (1, 2))[:: 1 if number % 2 else -1]:
                    self._workers(world, processes, slots)

    def _drains(self) -> None:
        """Drain the worlds in turn, each for one slice, and repeat."""
        drains = []
        for world in self.worlds:
            world.clear()
            world.first.call("rows.fill", number=self.sizes.drain, offset=OF_STATES)
            drains.append((world, "loops.drain", f"{world.server.name}.drain.{world.name}"))
            if world.name == "plain":
                world.first.call("rows.fill_raw", number=self.sizes.drain * 2)
                drains.append((world, "loops.drain_raw", f"{world.server.name}.raw"))
            world.first.call("rows.settle")
        found: dict[str, list[dict[str, Any]]] = {name: [] for *_, name in drains}
        for slice in range(self.sizes.slices):
            shift = slice % len(drains)
            for world, loop, name in drains[shift:] + drains[:shift]:
                found[name] += self._both(world, loop)
        for world, _, name in drains:
            self._add_drain(world.server.name, name, found[name])

    def _both(self, world: World, loop: str) -> list[dict[str, Any]]:
        for n, actor in enumerate(world.actors):
            actor.begin(loop, seconds=SLICE_SECONDS, owner=f"bench@host:{n}:boot{n}")
        return [actor.answer() for actor in world.actors]

    def _add_drain(self, server: str, name: str, answers: list[dict[str, Any]]) -> None:
        # Average the seconds, because the two actors drain at the same time.
        done, seconds = sum(a["number"] for a in answers), sum(a["seconds"] for a in answers) / 2
        self.samples.add(name, done / seconds)
        self.samples.add(f"{name}.processor_us", 1e6 * sum(a["processor"] for a in answers) / max(done, 1))
        self._count(server, "locked", sum(a["contended"] for a in answers))
        self._count(server, "refused", sum(a["refused"] for a in answers))

    def _count(self, server: str, what: str, number: int) -> None:
        """Add the number to a sum over all rounds instead of to a median, because a single occurrence is already too
        many.
        """
        kept = self.samples.values[f"{server}.{what}"]
        kept[:] = [sum(kept) + number]

    def _submit(self, world: World) -> None:
        for what, options in (
            ("one_by_one", {"number": self.sizes.each, "together": 10}),
            ("together", {"number": self.sizes.together}),
        ):
            world.clear()
            world.first.call("rows.settle")
            for way, rate in world.first.call(f"loops.submit_{what}", **options).items():
                self.samples.add(f"{world.server.name}.{what}.{way}", rate)

    def _pick_up(self, world: World) -> None:
        world.clear()
        world.first.call("rows.settle")
        workers = self._start(world, 1, 1)
        ways = ["ade"]
        try:
            time.sleep(0.5)
            if world.server.name == "postgres":
                ways.append("bare")
                world.first.call("rows.fill_raw", number=0)
                world.first.call("loops.expect_listener")
                world.second.begin("loops.listen_bare", number=self.sizes.pickups)
                world.first.call("loops.await_listener")
            # The gap must not match the 50 ms between a worker's polls on SQLite, or every submission would hit the
            # same phase.
            gap = 0.02 if world.server.name == "postgres" else 0.09
            taken = world.first.call("loops.pick_up", ways=ways, number=self.sizes.pickups, gap=gap)
            if "bare" in ways:
                world.second.answer()
        finally:
            self._stop(world, workers)
        for what, moments in taken.items():
            self.samples.add_moments(f"{world.server.name}.pickup.{what}", moments)

    def _workers(self, world: World, processes: int, slots: int) -> None:
        """Start workers on an empty queue, submit all runs at once, and compute the duration from the times in the
        rows.
        """
        world.clear()
        world.first.call("rows.fill_raw", number=self.sizes.drain * 2)
        world.first.call("rows.settle")
        # Measure raw SQL before and after the workers, so that both have the same load of the disk and the machine.
        raw = self._both(world, "loops.drain_raw")
        workers = self._start(world, processes, slots)
        try:
            behind = world.first.call("rows.last_run")
            world.first.call("rows.fill", number=self.sizes.drain // 2, offset=OF_STATES)
            until = time.monotonic() + LONGEST_DRAIN_SECONDS
            while world.first.call("rows.left") and time.monotonic() < until:
                time.sleep(0.1)
            found = world.first.call("rows.drained", behind=behind)
        finally:
            self._stop(world, workers)
        raw += self._both(world, "loops.drain_raw")
        if not found["number"]:
            raise RuntimeError(f"the workers did nothing:\n{tail(world.log)}")
        name = f"{world.server.name}.workers.{processes}x{slots}"
        self.samples.add(name, found["number"] / found["seconds"])
        self.samples.add(f"{name}.events each", found["events_each"])
        self.samples.add(f"{name}.raw", 2 * sum(a["number"] for a in raw) / sum(a["seconds"] for a in raw))
        self._count(world.server.name, "locked", found["contentions"])

    def _start(self, world: World, processes: int, slots: int) -> list[WorkerProcess]:
        log = world.directory / f"{world.server.name}-workers.log"
        log.touch()
        before = world.first.call("rows.workers_ready")
        started = [WorkerProcess(world.environment(), f"run={slots}", log, f"bench{n}") for n in range(processes)]
        until = time.monotonic() + START_SECONDS
        while world.first.call("rows.workers_ready") < before + processes:
            if time.monotonic() > until or any(worker.fallen() for worker in started):
                raise RuntimeError(f"the workers did not start:\n{tail(log)}")
            time.sleep(0.05)
        try:
            world.first.call("loops.probe")
        except RuntimeError as error:
            raise RuntimeError(f"{error}\nOutput of the workers:\n{tail(log)}") from error
        return started

    def _stop(self, world: World, workers: list[WorkerProcess]) -> None:
        for worker in workers:
            worker.stop()
        log = world.directory / f"{world.server.name}-workers.log"
        self._count(world.server.name, "locked", log.read_text(errors="replace").count("database is locked"))
        log.write_text("")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes, for a first look and not for a measurement"
    )
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, only to see whether it works")
    choices = (*PARTS, *(module.PART for module in MODULES), "engines", *engines.PARTS, *OF_DATA)
    parser.add_argument("--only", action="append", choices=choices, help="part to run (default: all); may be repeated")
    parser.add_argument("--database", choices=("postgres", "sqlite"), help="database to use (default: both)")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to write all results to")
    data_help = f"folder of documents with their truth, for the parts {' and '.join(OF_DATA)}"
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=data_help)
    options = parser.parse_args(arguments)
    of_data = [part for part in OF_DATA if part in (options.only or ())]
    if of_data and not options.data:
        parser.error(f"the part {of_data[0]} needs a folder: --data FOLDER")
    if understanding.PART in of_data:
        figures = understanding.run(options.data, understanding.WAYS, print, with_mistakes=False)
        if set(options.only or ()) == {understanding.PART}:
            if options.json:
                options.json.write_text(json.dumps(figures, indent=1))
            return 0
    size = "TINY" if options.tiny else "QUICK" if options.quick else "FULL"
    sizes: Sizes = globals()[size]
    of_engines: engines.Sizes = getattr(engines, size)
    of_modules = {module.PART: getattr(module, size) for module in MODULES}
    if options.rounds:
        sizes, of_engines = replace(sizes, rounds=options.rounds), replace(of_engines, rounds=options.rounds)
        of_modules = {part: replace(each, rounds=options.rounds) for part, each in of_modules.items()}
    wanted = [options.database] if options.database else ["postgres", "sqlite"]
    only = set(options.only or [*PARTS, *of_modules, "engines"])
    bench = Bench(sizes, [part for part in PARTS if part in only], _say)
    engine_parts = [part for part in engines.PARTS if {part, "engines"} & only]
    engine_bench = engines.Bench(of_engines, engine_parts, bench.samples, _say)
    for number in SIGNALS:
        # Turn signals into an exception, so that all context managers stop their child processes.
        signal.signal(number, leave)
    began = time.monotonic()
    if tables.PART in of_data:
        tables.measure(options.data, bench.samples, _say)
    # The parts that measure data need no database.
    wanted = wanted if only - {*OF_DATA} else []
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as scratch:
        os.chmod(scratch, 0o755)  # noqa: S103  # as root, the database server runs as another user
        with databases.servers(wanted, Path(scratch)) as servers:
            if bench.parts:
                bench.run(servers, Path(scratch))
            for module in MODULES:
                if module.PART in only:
                    module.Bench(of_modules[module.PART], bench.samples, _say).run(servers, Path(scratch))
            engine_bench.run(servers, Path(scratch))
    found = report.lines([*goals.GOALS, *goals.ON_SQLITE_ALONE, *goals.ON_DATA], bench.samples)
    print(report.table(found))
    print(f"\n{_machine()}; {time.monotonic() - began:.0f} s, {sizes if bench.parts else of_engines}")
    if engine_bench.sandbox:
        print(f"engines: {engine_bench.sandbox}, unless the line says “limits only”")
    for name in ("refused", "workers.2x1.events each", "workers.1x2.events each"):
        for database in wanted:
            if (value := bench.samples.median(f"{database}.{name}")) is not None:
                print(f"{database}.{name}: {value:g}")
    if options.json:
        options.json.write_text(json.dumps(_everything(bench, found), indent=1))
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _everything(bench: Bench, found: list[report.Line]) -> dict[str, Any]:
    return {
        "machine": _machine(),
        "sizes": vars(bench.sizes),
        "goals": [line.as_json() for line in found],
        "samples": bench.samples.values,
    }


def _machine() -> str:
    return f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} processors"


if __name__ == "__main__":
    sys.exit(main())
