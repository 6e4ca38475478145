"""The timed loops, as actor commands. Each function runs in one actor; to measure two competing processes, two actors
run the same function.
"""

import os
import random
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from benchmarks import kinds, rows
from runs import lifecycle
from runs.models import Run
from work.claims import Claim
from work.sql.contention import Contended, is_contention

RAW_CLAIM = {
    "postgresql": (
        "UPDATE bench_raw SET state = 1, worker = 'w', lease = now() + interval '60 s' WHERE id = (SELECT id FROM"
        " bench_raw WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
    ),
    "sqlite": (
        "UPDATE bench_raw SET state = 1, worker = 'w', lease = 1 WHERE id = (SELECT id FROM bench_raw WHERE state = 0"
        " ORDER BY id LIMIT 1) RETURNING id"
    ),
}
RAW_DONE = {
    "postgresql": "UPDATE bench_raw SET state = 2, done = now() WHERE id = %s AND state = 1",
    "sqlite": "UPDATE bench_raw SET state = 2, done = 2 WHERE id = %s AND state = 1",
}
BARE_CHANNEL = "bench_bare"
FORK_SERVER = """
import gc, os, struct, sys, time
from ade_engine import fork_server
gc.freeze()
gc.disable()
pipe = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
moment = struct.Struct("<qq")
while told := os.read(0, moment.size):
    if os.fork() == 0:
        os.write(pipe, moment.pack(moment.unpack(told)[0], time.monotonic_ns()))
        os._exit(0)
    os.wait()
"""
# The first few submissions find cold caches and are not counted.
COLD = 5
# The timeout for waiting on a pipe.
PATIENCE_SECONDS = 20.0


def drain(seconds: float, owner: str) -> dict[str, Any]:
    """Claim and complete runs until no run is left or the time is over."""
    return _drain(seconds, lambda: lifecycle.claim_next_run(owner), lifecycle.succeed)


def drain_raw(seconds: float, owner: str) -> dict[str, Any]:
    """Make the same two commits per row with bare SQL through Django's cursor, without events, rules or fences."""
    claim, done = RAW_CLAIM[connection.vendor], RAW_DONE[connection.vendor]
    with connection.cursor() as cursor:

        def take() -> Any:
            cursor.execute(claim)
            row = cursor.fetchone()
            return row and row[0]

        return _drain(seconds, take, lambda id: cursor.execute(done, (id,)))


def submit_one_by_one(number: int, together: int) -> dict[str, float]:
    """Return the rows per second of each way to submit runs one by one, each in its own commit. The ways alternate
    after `together` rows.
    """
    of, ready = rows.configuration("ready"), rows.ready_build()
    ways: dict[str, Callable[[Any], object]] = {
        "submit_many": lambda document: lifecycle.submit_many(of, [document], actor=rows.ACTOR),
        "submit": lambda document: lifecycle.submit(of, document, actor=rows.ACTOR),
        "create": lambda document: Run.objects.create(**_row(of, ready, document)),
    }
    documents = iter(rows.documents(len(ways) * (number + COLD)))
    seconds = dict.fromkeys(ways, 0.0)
    for one in ways.values():
        _time(one, islice(documents, COLD))
    for done in range(0, number, together):
        for way, one in ways.items():
            seconds[way] += _time(one, islice(documents, min(together, number - done)))
    return {way: number / taken for way, taken in seconds.items()}


def submit_together(number: int) -> dict[str, float]:
    """Return the rows per second of each way to submit all runs in one call. Each way has two turns, alternating."""
    of, ready = rows.configuration("ready"), rows.ready_build()
    ways: dict[str, Callable[[Any], object]] = {
        "submit_many": lambda documents: lifecycle.submit_many(of, documents, actor=rows.ACTOR),
        "bulk_create": lambda documents: Run.objects.bulk_create([Run(**_row(of, ready, one)) for one in documents]),
    }
    seconds = dict.fromkeys(ways, 0.0)
    for turn in range(2):
        for n, (way, all_of) in enumerate(ways.items()):
            documents = rows.documents(number, offset=(turn * 2 + n) * number)
            began = time.monotonic()
            all_of(documents)
            seconds[way] += time.monotonic() - began
    return {way: 2 * number / taken for way, taken in seconds.items()}


def pick_up(ways: list[str], number: int, gap: float) -> dict[str, list[float]]:
    """Return the milliseconds until another process has claimed a run that this process has submitted, trying each way
    in turn.
    """
    of, pipe = rows.configuration("ready"), _open_pipe()

    def submit(document: Any) -> tuple[int, int]:
        lifecycle.submit_many(of, [document], actor=rows.ACTOR)
        return time.monotonic_ns(), _read_moment(pipe)

    found = in_turn(ways, number, gap, submit)
    os.close(pipe)
    return found


def in_turn(
    ways: list[str], number: int, gap: float, submit: Callable[[Any], tuple[int, int]]
) -> dict[str, list[float]]:
    """Time submissions, trying each way in turn. `submit` returns the moments at which a submission was committed and
    at which it had its effect. The way "bare" does not call `submit`, but inserts a row and notifies `listen_bare`.
    """
    pipe = _open_pipe()
    found: dict[str, list[float]] = {f"{way}.{what}": [] for way in ways for what in ("whole", "from_commit")}
    with psycopg.connect(**_connection_options(), autocommit=True) if "bare" in ways else nullcontext() as bare:
        for document in rows.documents(number, offset=1):
            for way in ways:
                time.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
                began = time.monotonic_ns()
                if bare is not None and way == "bare":
                    _insert_bare(bare)
                    committed = time.monotonic_ns()
                    reached = _read_moment(pipe)
                else:
                    committed, reached = submit(document)
                found[f"{way}.whole"].append((reached - began) / 1e6)
                found[f"{way}.from_commit"].append((reached - committed) / 1e6)
    os.close(pipe)
    return found


def listen_bare(number: int, python: str = "") -> int:
    """Run the listener of the way "bare", which only claims a row after each notification and records the moment. With
    `python`, a fork of a warm process of that Python records the moment.
    """
    claim = RAW_CLAIM["postgresql"]
    with (
        psycopg.connect(**_connection_options(), autocommit=True) as listener,
        psycopg.connect(**_connection_options(), autocommit=True) as work,
        _forking(python) if python else nullcontext(kinds.stamp) as stamp,
    ):
        listener.execute(f"LISTEN {BARE_CHANNEL}")
        stamp(0)
        for heard, _note in enumerate(listener.notifies(timeout=PATIENCE_SECONDS), 1):
            work.execute(claim, prepare=True).fetchone()
            stamp(heard)
            if heard == number:
                return heard
    raise TimeoutError("the bare listener received nothing")


# The pipe on which the bare listener will report that it is listening.
_expected: list[int] = []


def expect_listener() -> None:
    """Open the pipe. Call this before the bare listener starts, because opening the pipe later would discard its first
    message.
    """
    _expected.append(_open_pipe())


def await_listener() -> None:
    """Wait until the bare listener has reported that it is listening."""
    pipe = _expected.pop()
    _read_moment(pipe)
    os.close(pipe)


def probe() -> None:
    """Submit a run and wait until a worker executes it."""
    pipe = _open_pipe()
    lifecycle.submit_many(rows.configuration("ready"), rows.documents(1), actor=rows.ACTOR)
    _read_moment(pipe)
    os.close(pipe)


@contextmanager
def _forking(python: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that records the moment in a fork of a process that has imported ADE's fork server."""
    command = [python, "-I", "-B", "-c", FORK_SERVER, os.environ[kinds.PIPE]]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
        assert server.stdin is not None
        orders = server.stdin

        def stamp(id: int) -> None:
            orders.write(kinds.MOMENT.pack(id, 0))
            orders.flush()

        yield stamp


def _time(one: Callable[[Any], object], documents: Iterable[Any]) -> float:
    several = list(documents)
    began = time.monotonic()
    for document in several:
        one(document)
    return time.monotonic() - began


def _drain(seconds: float, take: Callable[[], Any], complete: Callable[[Any], object]) -> dict[str, Any]:
    number = contended = refused = 0
    processor, began = _processor_seconds(), time.monotonic()
    until = began + seconds
    while time.monotonic() < until:
        try:
            claim = take()
            if claim is None:
                break
            done = complete(claim)
        except Contended:
            contended += 1
            continue
        except Exception as error:
            if not is_contention(error):
                raise
            contended += 1
            continue
        number += 1
        refused += isinstance(claim, Claim) and done is not True
    ended = time.monotonic()
    return {
        "number": number,
        "seconds": ended - began,
        "processor": _processor_seconds() - processor,
        "contended": contended,
        "refused": refused,
    }


def _processor_seconds() -> float:
    """Return the processor seconds of this process and its database backend, which other programs don't affect."""
    seconds = time.process_time()
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        ran = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
        seconds += int(ran.split()[0]) / 1e9
    return seconds


def _insert_bare(bare: "psycopg.Connection[Any]") -> None:
    with bare.transaction():
        bare.execute("INSERT INTO bench_raw (payload) VALUES ('x')")
        bare.execute("SELECT pg_notify(%s, 'job')", (BARE_CHANNEL,))


def _row(of: Any, build_id: int, document: Any) -> dict[str, Any]:
    """Return the columns of the row that a submission creates."""
    return {
        "workspace_id": of.workspace_id,
        "configuration_id": of.pk,
        "build_id": build_id,
        "input_document_id": document.pk,
        "last_sequence": 1,
    }


def _connection_options() -> dict[str, Any]:
    database = settings.DATABASES["default"]
    options = {"dbname": database["NAME"], "user": database["USER"], "password": database["PASSWORD"]}
    options |= {"host": database["HOST"], "port": database["PORT"], **database.get("OPTIONS", {})}
    return {name: value for name, value in options.items() if value}


def _open_pipe() -> int:
    # Open the pipe for reading and writing, so that this does not block and the pipe stays open when the other side
    # closes it.
    pipe = os.open(os.environ[kinds.PIPE], os.O_RDWR)
    while select.select([pipe], [], [], 0)[0]:
        os.read(pipe, kinds.MOMENT.size)
    return pipe


def _read_moment(pipe: int) -> int:
    if not select.select([pipe], [], [], PATIENCE_SECONDS)[0]:
        raise TimeoutError("no worker claimed the submitted runs")
    return int(kinds.MOMENT.unpack(os.read(pipe, kinds.MOMENT.size))[1])
