"""Health checks: whether the database answers in time, whether the disk is full, and how much work is queued."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Thread
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, connection
from django.db.models import Min

from work import clock
from work.models import Worker
from work.state_machine import StateMachine
from work.work_types import all_work_types

log = structlog.get_logger(__name__)

# Limits of free disk space. Below the first, the next file or row may fail to be written. Below the second, ADE warns.
LEAST_FREE_BYTES, FEW_FREE_BYTES = 100 * 2**20, 2**30
# With less free space than this, no write is certain to succeed, because uploads are spooled in larger parts.
FULL_BYTES = 4 * 2**20

_turn = Lock()
_answer: "Future[bool]" = Future()
_answer.set_result(True)


@dataclass(frozen=True)
class Queue:
    kind: str
    waiting: int
    at_work: int
    oldest_waiting_since: datetime | None


@dataclass(frozen=True)
class Concurrency:
    """The number of live workers, and of their threads per kind of work. Draining workers count only in `workers`."""

    workers: int
    of_kinds: Mapping[str, int]


def database_answers(seconds: float) -> bool:
    """Return False if the database fails or times out. Concurrent callers share one query on its own connection."""
    global _answer
    with _turn:
        if _answer.done():
            _answer = Future()
            Thread(target=_query, args=[_answer], name="health", daemon=True).start()
        answer = _answer
    try:
        return answer.result(seconds)
    except TimeoutError:
        log.error("health.no_answer", seconds=seconds)
        return False


def disk_is_full() -> bool:
    """Return whether the disk of ADE_VAR_DIR is full. It holds uploads and, by default, all files and SQLite."""
    return shutil.disk_usage(settings.VAR_DIR).free < FULL_BYTES


def queues() -> Iterator[Queue]:
    """Yield the queue of each kind of work whose rows wait to be claimed."""
    for kind in all_work_types():
        if kind.handler and kind.states.initial != kind.states.claimed:
            waiting = kind.states.rows.filter(status=kind.states.initial)
            since = waiting.aggregate(since=Min("created_at"))["since"]
            yield Queue(kind.name, waiting.count(), at_work(kind.states), since)


def at_work(states: StateMachine) -> int:
    return states.rows.filter(status=states.claimed).count()


def concurrency() -> Concurrency:
    clock.keep_measured()
    workers = list(Worker.objects.alive().only("lanes", "drain_requested_at"))
    lanes = (Counter(worker.lanes) for worker in workers if not worker.drain_requested_at)
    return Concurrency(len(workers), sum(lanes, Counter()))


def _query(answer: "Future[bool]") -> None:
    has_answered = False
    try:
        if getattr(connection, "pool", None):
            # Bypass the connection pool: it may have no free connection although the database is well.
            wrapper: Any = connection
            with wrapper.wrap_database_errors:
                wrapper.Database.connect(**wrapper.get_connection_params()).close()
        else:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        has_answered = True
    except Error as error:
        log.error("health.failing", error=str(error).strip())
    finally:
        connection.close()
        answer.set_result(has_answered)
