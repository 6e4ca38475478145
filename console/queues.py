"""Counts waiting and running work of each kind, at a cost that does not grow with the amount of work."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, QuerySet, Value

from work.models import Work
from work.state_machine import By
from work.why import Crew
from work.work_types import WorkType, all_work_types

MOST_COUNTED = 1000
# For each kind: the column since when a row waits, and the order of an index that contains just the waiting rows,
# oldest first if possible.
_IN_LINE: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("created_at", ("input_document_id", "created_at", "pk")),
    "build": ("queued_at", ("queued_at", "pk")),
    "stage": ("created_at", ("created_at", "pk")),
    "delivery": ("created_at", ("next_attempt_at", "pk")),
}


@dataclass(frozen=True)
class Queue:
    kind: str
    name: str
    waiting: int
    # Whether more are waiting than were counted; `oldest_since` is then the oldest of those counted.
    is_over: bool
    oldest_since: datetime | None
    at_work: int
    # Work in slots of active workers. Other work belongs to workers that drain or are lost.
    in_slots: int
    slots: int

    @property
    def is_full(self) -> bool:
        return self.in_slots >= self.slots

    @property
    def is_stuck(self) -> bool:
        return bool(self.waiting) and not self.slots


def queues(crew: Crew) -> list[Queue]:
    """Return the queues. Costs one query per kind, and one for all running work."""
    kinds = [kind for kind in all_work_types() if kind.handler and kind.states.initial != kind.states.claimed]
    at_work = list(_at_work(kinds)) if kinds else []
    return [_queue(kind, [owner for name, owner in at_work if name == kind.name], crew) for kind in kinds]


def _queue(kind: WorkType, owners: list[str | None], crew: Crew) -> Queue:
    slots = crew.slots(kind.name)
    column, order = _IN_LINE.get(kind.name, ("created_at", ()))
    waiting = kind.states.rows.filter(status__in=list(_origins(kind))).order_by(*order)
    moments = list(waiting.values_list(column, flat=True)[: MOST_COUNTED + 1])
    counted = moments[:MOST_COUNTED]
    name = str(kind.states.model._meta.verbose_name_plural)
    is_over = len(moments) > MOST_COUNTED
    in_slots = sum(owner in slots for owner in owners)
    return Queue(
        kind.name, name, len(counted), is_over, min(counted, default=None), len(owners), in_slots, slots.total()
    )


def _origins(kind: WorkType) -> Iterator[str]:
    """Yield the statuses from which a worker can claim a row of this kind."""
    for verb in kind.states:
        move = kind.states[verb]
        if move.by is By.WORKER and issubclass(kind.states.model, Work) and move.target == kind.states.claimed:
            yield from move.origins


def _at_work(kinds: list[WorkType]) -> "QuerySet[Any, Any]":
    """Return kind and owner of each claimed row; there are at most as many as slots."""
    first, *others = (
        kind.states.rows.filter(status=kind.states.claimed)
        .order_by()
        .values_list(Value(kind.name, output_field=CharField()), "lease_owner")
        for kind in kinds
    )
    return first.union(*others, all=True)
