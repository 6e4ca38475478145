"""Explains why a row is waiting. The answer consists of gates, each of which blocks a queued row or lets it pass.

This module has the two gates that all kinds of work share: a live worker and a free thread. Each app adds its own
gates, which check the same conditions as its claim.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from django.db.models import QuerySet

from work import clock
from work.models import Work, Worker
from work.sql import compiled
from work.sql.compiled import Query
from work.state_machine import StateMachine

# Given the ids of rows, returns the ids that the user may know about.
Names = Callable[[Sequence[int]], Set[int]]

# Counting stops here: the queue may be long, and no reader needs the exact number.
MOST_COUNTED = 1000
MOST_NAMED = 5


@dataclass(frozen=True)
class Gate:
    name: str
    holds: bool
    # `message` is for people, `data` for programs.
    message: str
    # What the row waits for: "run 12", "build 3" or a worker's owner name.
    holder: str = ""
    since: datetime | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "holds": self.holds,
            "message": self.message,
            "holder": self.holder or None,
            "since": self.since,
            "data": dict(self.data),
        }


@dataclass(frozen=True)
class Explanation:
    kind: str
    id: int
    status: str
    outcome: str
    message: str
    # The gates, in the order in which a person would check them. Empty for a row that is not queued.
    gates: tuple[Gate, ...] = ()

    @property
    def holding(self) -> list[Gate]:
        return [gate for gate in self.gates if gate.holds]

    def reason(self) -> str:
        """Return in one sentence why this row is blocked. Another row that waits for it shows this as its reason."""
        return self.holding[0].message if self.holding else self.message

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "id": self.id,
            "status": self.status,
            "outcome": self.outcome,
            "message": self.message,
            "held_by": [gate.name for gate in self.holding],
            "gates": [gate.to_json() for gate in self.gates],
        }


@dataclass(frozen=True)
class LiveWorkers:
    """The live workers, queried once for all gates of one answer."""

    workers: tuple[Worker, ...]

    @classmethod
    def now(cls) -> "LiveWorkers":
        return cls(tuple(Worker.objects.alive().order_by("id")))

    def slots(self, kind: str) -> "Counter[str]":
        """Return owner -> number of threads for this kind of work. Draining workers are left out."""
        return Counter(
            {worker.owner: worker.lanes[kind] for worker in self._with_threads(kind) if not worker.is_draining}
        )

    def draining(self, kind: str) -> list[Worker]:
        """Return the draining workers with threads for this kind of work, the latest drain request last."""
        draining = [worker for worker in self._with_threads(kind) if worker.is_draining]
        return sorted(draining, key=lambda worker: (worker.drain_requested_at or clock.now(), worker.pk))

    def _with_threads(self, kind: str) -> list[Worker]:
        return [worker for worker in self.workers if worker.lanes.get(kind, 0)]


def of_queued(states: StateMachine, id: int, gates: Iterable[Gate]) -> Explanation:
    gates = tuple(gates)
    holding = ", ".join(gate.name for gate in gates if gate.holds)
    reason = f"blocked by: {holding}" if holding else "nothing blocks it: a worker will claim it shortly"
    message = f"{states.model._meta.verbose_name} {id} is queued; {reason}."
    return Explanation(states.kind, id, states.initial, states.initial, message, gates)


def of_others(states: StateMachine, row: Work, status: str, outcome: str) -> Explanation:
    """Explain a row that does not wait because it is not queued."""
    name = f"{states.model._meta.verbose_name} {row.pk}"
    if status == states.initial:
        # The row was queued again between two queries.
        message = f"{name} has just been queued. Try again."
    elif row.finished_at:
        message = f"{name} ended {at(row.finished_at)}: {outcome.replace('_', ' ')}."
    else:
        message = f"{name} is {status}, claimed {by(row.lease_owner, row.started_at)}."
    return Explanation(states.kind, row.pk, status, outcome, message)


def of_worker(crew: LiveWorkers, states: StateMachine) -> Gate:
    """Return the gate that lets a row pass if a live worker takes this kind of work."""
    many = str(states.model._meta.verbose_name_plural)
    alive, available, draining = len(crew.workers), len(crew.slots(states.kind)), crew.draining(states.kind)
    data = {"alive": alive, "with_slots": available, "draining": len(draining)}
    if available:
        message = f"{_number(available, 'live worker')} {_take(available)} {many}."
        return Gate("worker", False, message, data=data)
    if draining:
        last, number = draining[-1], len(draining)
        since, they_are = last.drain_requested_at, "it is" if number == 1 else "they are"
        message = (
            f"{_number(number, 'live worker')} {_take(number)} {many}, but {they_are} draining and will claim nothing"
            f" more; {last.owner} was asked to drain {by(last.drain_requested_by, since)}."
        )
        return Gate("worker", True, message, last.owner, since, data)
    if alive:
        message = f"{_number(alive, 'worker')} {_are(alive)} alive, but none takes {many}."
        return Gate("worker", True, message, data=data)
    newest = Worker.objects.order_by("-heartbeat_at").first()
    if newest is None:
        return Gate("worker", True, "No worker is alive. None has ever been started.", data=data)
    since = newest.stopped_at or newest.heartbeat_at
    end = "stopped" if newest.stopped_at else "sent its last heartbeat"
    return Gate("worker", True, f"No worker is alive. {newest.owner} {end} {at(since)}.", newest.owner, since, data)


def of_capacity(crew: LiveWorkers, states: StateMachine, ahead: int, names: Names | None = None) -> Gate:
    """Return the gate that lets a row pass if a thread is free and no earlier row will take it.

    Without `names` the user may know about all rows.
    """
    slots = crew.slots(states.kind)
    rows = [row for row in _at_work(states) if row.lease_owner in slots] if slots else []
    free = sum((slots - Counter(str(row.lease_owner) for row in rows)).values())
    nameable = rows
    if names is not None and rows:
        known = names([row.pk for row in rows])
        nameable = [row for row in rows if row.pk in known]
    others = len(rows) - len(nameable)
    data = {
        "slots": slots.total(),
        "free": free,
        "ahead": ahead,
        "at_work": [
            {"kind": states.kind, "id": row.pk, "by": row.lease_owner, "since": row.started_at} for row in nameable
        ],
        "at_work_of_others": others,
    }
    if not slots:
        return Gate("capacity", False, f"No worker has a thread for it; {are_ahead(states, ahead)}.", data=data)
    if free:
        message = f"{free} of {_number(slots.total(), 'thread')} {_are(free)} free; {are_ahead(states, ahead)}"
        message += " and will be claimed first." if ahead >= free else "."
        return Gate("capacity", ahead >= free, message, data=data)
    busy = "The only thread is busy" if slots.total() == 1 else f"All {slots.total()} threads are busy"
    message = f"{busy}: {_list(states, nameable, others)}; {are_ahead(states, ahead)}."
    if not nameable:
        return Gate("capacity", True, message, data=data)
    longest = nameable[0]
    return Gate("capacity", True, message, f"{states.kind} {longest.pk}", longest.started_at, data)


def are_ahead(states: StateMachine, ahead: int) -> str:
    one, many = states.model._meta.verbose_name, states.model._meta.verbose_name_plural
    number = {0: f"no {one}", 1: f"1 {one}"}.get(ahead, f"{ahead} {many}")
    return f"{f'over {MOST_COUNTED} {many}' if ahead > MOST_COUNTED else number} {_are(ahead or 1)} ahead of it"


def count(query: Query, *arguments: Any) -> int:
    """Count the rows of a query that `counted` has limited."""
    return len(compiled.rows(query, *arguments))


def counted(rows: "QuerySet[Any, Any]") -> "QuerySet[Any, Any]":
    return rows.values_list("pk")[: MOST_COUNTED + 1]


def at(moment: datetime) -> str:
    return f"at {moment:%Y-%m-%d %H:%M:%S}"


def by(owner: str | None, since: datetime | None) -> str:
    """Return the phrase that says who holds a row or asked for something, and since when."""
    return f"by {owner or '(unknown)'}" + (f" at {since:%Y-%m-%d %H:%M:%S}" if since else "")


def _at_work(states: StateMachine) -> list[Work]:
    """Return the claimed rows, the longest claimed first."""
    ids = [id for (id,) in compiled.rows(_claimed(states.model))]
    rows = states.rows.filter(pk__in=ids, status=states.claimed).only("lease_owner", "started_at") if ids else []
    now = clock.now()
    return sorted(rows, key=lambda row: (row.started_at or now, row.pk))


@cache
def _claimed(model: Any) -> Query:
    # Cached because the function is the key of the compiled SQL: it must be the same object for each model.
    return lambda: counted(model._base_manager.filter(status=model.CLAIMED))


def _list(states: StateMachine, rows: list[Work], others: int) -> str:
    parts = [f"{states.kind} {row.pk} claimed {by(row.lease_owner, row.started_at)}" for row in rows[:MOST_NAMED]]
    if (more := len(rows) - MOST_NAMED) > 0:
        parts.append(f"and {more} more")
    if others:
        parts.append(f"{'and ' if parts else ''}{others} in other workspaces")
    return ", ".join(parts)


def _number(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _take(number: int) -> str:
    return "takes" if number == 1 else "take"
