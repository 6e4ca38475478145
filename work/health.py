"""Whether the database answers, asked so that nobody waits for one that does not; and how much work there is."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Thread

import structlog
from django.db import Error, connection
from django.db.models import Min

from work import clock
from work.kinds import all_kinds
from work.models import Worker
from work.moves import Moves

log = structlog.get_logger(__name__)

# Of a disk: below the first the next file, or the next row, may not be written; below the second, it is time to look.
LEAST_FREE_BYTES, FEW_FREE_BYTES = 100 * 2**20, 2**30

_turn = Lock()
_asked: "Future[bool]" = Future()
_asked.set_result(True)


@dataclass(frozen=True)
class Queue:
    kind: str
    waiting: int
    at_work: int
    oldest_waiting_since: datetime | None


@dataclass(frozen=True)
class Slots:
    """Of the workers that are alive; of kinds, only of those that take up work."""

    workers: int
    of_kinds: Mapping[str, int]


def database_answers(seconds: float) -> bool:
    """False too when it takes longer. However many ask, there is one question at a time, on a connection of its own."""
    global _asked
    with _turn:
        if _asked.done():
            _asked = Future()
            Thread(target=_ask, args=[_asked], name="health", daemon=True).start()
        asked = _asked
    try:
        return asked.result(seconds)
    except TimeoutError:
        log.error("health.no_answer", seconds=seconds)
        return False


def queues() -> Iterator[Queue]:
    """Of all kinds of work that are there before somebody claims them."""
    for kind in all_kinds():
        if kind.lane and kind.moves.initial != kind.moves.claimed:
            waiting = kind.moves.rows.filter(status=kind.moves.initial)
            since = waiting.aggregate(since=Min("created_at"))["since"]
            yield Queue(kind.name, waiting.count(), at_work(kind.moves), since)


def at_work(moves: Moves) -> int:
    return moves.rows.filter(status=moves.claimed).count()


def slots() -> Slots:
    clock.keep_measured()
    workers = list(Worker.objects.alive().only("lanes", "drain_requested_at"))
    lanes = (Counter(worker.lanes) for worker in workers if not worker.drain_requested_at)
    return Slots(len(workers), sum(lanes, Counter()))


def _ask(told: "Future[bool]") -> None:
    answer = False
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        answer = True
    except Error as error:
        log.error("health.failing", error=str(error).strip())
    finally:
        connection.close()
        told.set_result(answer)
