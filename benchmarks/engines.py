"""The engine part: measures real workers, environments and engines against the least code that does the same work.

Each worker has its own database, so that only the worker whose turn it is has work. All databases are copies of one in
which the environments are already built.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import configurations, processes, report, starts
from benchmarks.actors import WorkerProcess, tail
from benchmarks.databases import Postgres, Sqlite, World

# The number of a worker's threads for runs, and of a bare loop's threads.
SLOTS = 2
MEGABYTE = 1 << 20
START_SECONDS = 60.0
# After this time without work, engines and workers have released the memory of their last run.
IDLE_SECONDS = 1.0
# After this time, a new engine has started with all of its processes.
SETTLED_SECONDS = 0.1
# A worker starts its engines with these variables, so bare loops need them too. Otherwise libraries would start threads
# on one side of the comparison only.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# With DEBUG, Django keeps thousands of queries in memory, which would count as the worker's memory.
AS_DEPLOYED = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEBUG": "false", "SECRET_KEY": "of the benchmark " * 4}
COLD_ENGINES = {"ADE_WARM_ENGINES": "false"}

# For each part, the configurations that it runs in addition to "nothing".
CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "starts": (),
    "heavy": ("heavy",),
    "statement": ("statement",),
    "cancel": ("sleep",),
    "flood": ("print", "silent"),
    "memory": (),
}
PARTS = tuple(CONFIGURATIONS)


@dataclass(frozen=True)
class Sizes:
    rounds: int
    slices: int
    # How many runs make a slice of about a second.
    warm: int
    cold: int
    heavy: int
    # How long a bare loop lasts in a slice.
    seconds: float
    heavy_seconds: float
    statements: int
    cancels: int
    printed_bytes: int
    # How many runs are queued while one engine is busy. Must be more than can finish meanwhile.
    beside: int
    # How many runs are done between two measurements of memory.
    runs: int
    imports: tuple[str, ...] = configurations.HEAVY

    @property
    def documents(self) -> int:
        return 1 + max(self.warm, self.cold, self.heavy, self.statements, self.beside)


FULL = Sizes(
    rounds=5, slices=2, warm=300, cold=60, heavy=200, seconds=1.0, heavy_seconds=3.0, statements=100, cancels=10,
    printed_bytes=1 << 30, beside=4000, runs=5000,
)  # fmt: skip
QUICK = Sizes(
    rounds=3, slices=1, warm=150, cold=40, heavy=100, seconds=0.7, heavy_seconds=2.0, statements=30, cancels=4,
    printed_bytes=200 << 20, beside=2000, runs=1000,
)  # fmt: skip
TINY = Sizes(
    rounds=1, slices=1, warm=6, cold=4, heavy=6, seconds=0.05, heavy_seconds=0.05, statements=2, cancels=1,
    printed_bytes=32 << 20, beside=300, runs=12, imports=configurations.INSTEAD_OF_HEAVY,
)  # fmt: skip


class Worker:
    """A process that runs `manage.py worker` with settings as deployed, on its own database."""

    def __init__(self, world: World, variables: dict[str, str]) -> None:
        self.world, self.call = world, world.first.call
        self.log = world.directory / f"{world.server.name}-{world.name}-worker.log"
        environment = world.environment(**AS_DEPLOYED, **variables)
        self._process = WorkerProcess(environment, f"run={SLOTS}", self.log, world.name)
        self.pid = self._process.process.pid
        # How many runs this worker has finished.
        self.done = 0

    def wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not self.call("rows.workers_ready"):
            if time.monotonic() > until or self._process.fallen():
                raise RuntimeError(f"the worker did not start:\n{tail(self.log)}")
            time.sleep(0.05)

    def drain(self, name: str, number: int) -> dict[str, float]:
        """Have the worker finish this many runs of this configuration. Return the seconds and processor seconds."""
        before = self._processor_seconds()
        found: dict[str, float] = self.call("feeding.drain", name=name, number=number)
        after = self._processor_seconds()
        # The time of an engine that was replaced meanwhile is lost, because its process is gone.
        used = {what: sum(now - before[what].get(pid, 0) for pid, now in of.items()) for what, of in after.items()}
        self.done += number
        return {"number": number, "seconds": found["seconds"], "processor": sum(used.values()), **used}

    def _processor_seconds(self) -> dict[str, dict[int, float]]:
        """Return the processor seconds of each process: the worker, its engines with their starters and guards, and the
        server.
        """
        used = {
            "worker": {self.pid: processes.own_processor_seconds(self.pid)},
            "engines": processes.processor_seconds(processes.tree(self.pid)[1:]),
        }
        if isinstance(self.world.server, Postgres):
            used["server"] = processes.processor_seconds(processes.tree(self.call("rows.server_process")))
        return used

    def stop(self) -> None:
        self._process.stop()
        self.world.stop()


class Bench:
    def __init__(self, sizes: Sizes, parts: list[str], samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.parts, self.samples, self.say = sizes, parts, samples, say
        # ADE's description of the sandbox in which engines run on this machine.
        self.sandbox = ""

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        """Measure all parts on the first server, and only "statement", which has a goal there, on the second."""
        for n, server in enumerate(servers):
            parts = self.parts if n == 0 else [part for part in self.parts if part == "statement"]
            if parts:
                OnServer(self, server, directory).measure(parts)


class OnServer:
    def __init__(self, bench: Bench, server: Postgres | Sqlite, directory: Path) -> None:
        self.bench, self.sizes, self.server, self.directory = bench, bench.sizes, server, directory
        self.name = f"{server.name}.engines"
        # For each configuration, the path of its environment's Python.
        self.pythons: dict[str, str] = {}

    def measure(self, parts: list[str]) -> None:
        self._prepare({"nothing", *(name for part in parts for name in CONFIGURATIONS[part])})
        with self._workers({"warm": {}}) as (worker,):
            if "memory" in parts:
                self._memory(worker, "idle")
            if "starts" in parts:
                self._start_engines(worker)
            if "memory" in parts:
                self._do_runs(worker)
                self._memory(worker, "after")
            ways: dict[str, Callable[[], None]] = {
                "heavy": lambda: self._heavy(worker),
                "statement": lambda: self._statements(worker),
                "cancel": lambda: self._cancels(worker),
                "flood": lambda: self._flood(worker),
            }
            for part in [each for each in ways if each in parts]:
                self._rounds(part, lambda _, part=part: ways[part]())  # type: ignore[misc]  # the lambda is called in this iteration

    def _prepare(self, names: set[str]) -> None:
        began = time.monotonic()
        sources = configurations.sources(self.sizes.imports)
        self.server.create("built")
        with self._workers({"built": {"ADE_MAX_BUILD_CONCURRENCY": "2"}}, copied=False) as (worker,):
            worker.call("feeding.configure", sources={name: sources[name] for name in names})
            self.pythons = worker.call("feeding.build")
            self.bench.sandbox = worker.call("feeding.sandbox")
        self.bench.say(f"{self.name}: built after {time.monotonic() - began:.0f} s")

    @contextmanager
    def _workers(self, variables: dict[str, dict[str, str]], *, copied: bool = True) -> Iterator[list[Worker]]:
        """Start a worker for each database name in `variables`, with the environment variables given there."""
        with ExitStack() as opened:
            workers = [Worker(self._world(name, copied), own) for name, own in variables.items()]
            for worker in workers:
                opened.callback(worker.stop)
            for worker in workers:
                worker.wait()
            yield workers

    def _world(self, name: str, copied: bool) -> World:
        if copied:
            self.server.copy("built", name)
        world = World(self.server, name, self.directory)
        if not copied:
            world.first.call("rows.seed", documents=self.sizes.documents)
        return world

    def _rounds(self, part: str, measure: Callable[[int], None]) -> None:
        began = time.monotonic()
        for number in range(self.sizes.rounds):
            measure(number)
        self.bench.say(f"{self.name}: {part}, {self.sizes.rounds} rounds in {time.monotonic() - began:.0f} s")

    def _start_engines(self, warm: Worker) -> None:
        # With "off", engines run with resource limits but without bubblewrap.
        limits_only = COLD_ENGINES | {"ADE_SANDBOX": "off"}
        with self._workers({"cold": COLD_ENGINES, "limits": limits_only}) as (cold, limits):
            for worker in (warm, cold, limits):
                worker.drain("nothing", 2 * SLOTS)
            ways = {
                "warm": lambda: warm.drain("nothing", self.sizes.warm),
                "floor": lambda: starts.bare_loop(sys.executable, "pass", self.sizes.seconds),
                "cold": lambda: cold.drain("nothing", self.sizes.cold),
                "limits": lambda: limits.drain("nothing", self.sizes.cold),
            }
            self._rounds("starts", lambda number: self._in_turn(ways, number))

    def _heavy(self, worker: Worker) -> None:
        worker.drain("heavy", 2 * SLOTS)
        statement = f"import {', '.join(self.sizes.imports)}"
        python, seconds = self.pythons["heavy"], self.sizes.heavy_seconds
        self._in_turn(
            {
                "heavy.warm": lambda: worker.drain("heavy", self.sizes.heavy),
                "heavy.floor": lambda: starts.bare_loop(python, statement, seconds, ONE_THREAD),
            }
        )

    def _in_turn(self, ways: dict[str, Callable[[], dict[str, float]]], number: int = 0) -> None:
        found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for slice in range(self.sizes.slices):
            shift = (number + slice) % len(ways)
            for way in [*ways, *ways][shift : shift + len(ways)]:
                found[way].append(ways[way]())
        for way, slices in found.items():
            sums = {what: sum(each[what] for each in slices) for what in slices[0]}
            done = sums.pop("number")
            self._add(way, done / sums.pop("seconds"))
            for what, seconds in sums.items():
                self._add(f"{way}.{what}_us", 1e6 * seconds / done)

    def _statements(self, worker: Worker) -> None:
        worker.drain("statement", 2 * SLOTS)
        ways, listener = ["ade"], worker.world.second
        # The gap must not match the 50 ms between a worker's polls on SQLite, or every submission would hit the same
        # phase.
        gap, number = 0.09, min(self.sizes.statements, 30)
        if self.server.name == "postgres":
            ways, gap, number = ["ade", "bare"], 0.02, self.sizes.statements
            worker.call("rows.fill_raw", number=0)
            worker.call("loops.expect_listener")
            listener.begin("loops.listen_bare", number=number, python=self.pythons["statement"])
            worker.call("loops.await_listener")
        taken = worker.call("feeding.pick_up", ways=ways, number=number, gap=gap)
        if "bare" in ways:
            listener.answer()
        for what, moments in taken.items():
            self.bench.samples.add_moments(f"{self.name}.statement.{what}", moments)

    def _cancels(self, worker: Worker) -> None:
        """Cancel runs whose engine sleeps, because most engines that people cancel are waiting for something."""
        worker.drain("sleep", 2 * SLOTS)
        found = [self._cancel(worker) for _ in range(self.sizes.cancels)]
        for what in ("gone", "cancelled"):
            self.bench.samples.add_moments(f"{self.name}.cancel.{what}", [each[what] for each in found])

    def _cancel(self, worker: Worker) -> dict[str, float]:
        before = set(processes.tree(worker.pid))
        run = worker.call("feeding.start", name="sleep", text="600")
        time.sleep(SETTLED_SECONDS + random.random() * SETTLED_SECONDS)  # noqa: S311  # no secret
        engine = list(set(processes.tree(worker.pid)) - before)
        worker.world.first.begin("feeding.cancel", id=run)
        gone = processes.gone_at(engine)
        moments = worker.world.first.answer()
        ended = {"gone": gone, "cancelled": moments["cancelled"]}
        return {what: (moment - moments["committed"]) / 1e6 for what, moment in ended.items()}

    def _flood(self, worker: Worker) -> None:
        worker.drain("nothing", 2 * SLOTS)
        processes.forget_peak(worker.pid)
        before = processes.resident_bytes(worker.pid)
        loud = self._beside(worker, "print", str(self.sizes.printed_bytes))
        self._add("flood.growth", (processes.peak_bytes(worker.pid) - before) / MEGABYTE)
        share = min(loud["processor"] / loud["seconds"], 1)
        silent = self._beside(worker, "silent", f"{loud['seconds']} {share}")
        asleep = self._beside(worker, "silent", f"{loud['seconds']} 0")
        for what, found in {"print": loud, "silent": silent, "asleep": asleep}.items():
            self._add(f"beside.{what}", found["rate"])
        self._add("flood.seconds", loud["seconds"])
        self._add("flood.share", share)

    def _beside(self, worker: Worker, name: str, text: str) -> dict[str, float]:
        run = worker.call("feeding.start", name=name, text=text)
        behind = worker.call("feeding.queue", name="nothing", number=self.sizes.beside)
        found: dict[str, float] = worker.call("feeding.beside", id=run, behind=behind)
        worker.call("feeding.forget_queued", behind=behind)
        return found

    def _do_runs(self, worker: Worker) -> None:
        while worker.done < self.sizes.runs:
            worker.drain("nothing", min(self.sizes.warm, self.sizes.runs - worker.done))

    def _memory(self, worker: Worker, when: str) -> None:
        """Measure the memory while each thread has an engine. Drain several runs per thread first, so that every thread
        has started one.
        """
        worker.drain("nothing", 10 * SLOTS)
        time.sleep(IDLE_SECONDS)
        tree = processes.tree(worker.pid)
        self._add(f"memory.{when}", processes.proportional_bytes(tree) / MEGABYTE)
        self._add(f"memory.{when}.worker", processes.proportional_bytes([worker.pid]) / MEGABYTE)
        self._add(f"memory.{when}.processes", len(tree))

    def _add(self, what: str, value: float) -> None:
        self.bench.samples.add(f"{self.name}.{what}", value)
