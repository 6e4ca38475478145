"""Counts waiting and running work of each kind. The cost does not grow with the amount of work."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import CharField, Value

from work.models import Work
from work.state_machine import By
from work.why import LiveWorkers
from work.work_types import WorkType, all_work_types

MOST_COUNTED = 1000
# For each kind: the column with the time since which a row waits, and the order of an index that contains only waiting
# rows. If possible, this order is oldest first.
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
    # Whether more rows wait than were counted. If so, `oldest_since` is the oldest time among the counted rows.
    is_over: bool
    oldest_since: datetime | None
    running: int
    # Running work of active workers. The rest belongs to workers that drain or are lost.
    active: int
    # The number of threads of active workers.
    concurrency: int

    @property
    def is_full(self) -> bool:
        return self.active >= self.concurrency

    @property
    def is_stuck(self) -> bool:
        return bool(self.waiting) and not self.concurrency


def queues(crew: LiveWorkers) -> list[Queue]:
    """Return the queues. Costs one query per kind, and one for all running work."""
    kinds = [kind for kind in all_work_types() if kind.handler and kind.states.initial != kind.states.claimed]
    owners: dict[str, list[str | None]] = {kind.name: [] for kind in kinds}
    # There are at most as many claimed rows as threads.
    claimed = [
        kind.states.rows.filter(status=kind.states.claimed)
        .order_by()
        .values_list(Value(kind.name, output_field=CharField()), "lease_owner")
        for kind in kinds
    ]
    for name, owner in claimed[0].union(*claimed[1:], all=True) if claimed else ():
        owners[name].append(owner)
    return [_queue(kind, owners[kind.name], crew) for kind in kinds]


def _queue(kind: WorkType, owners: list[str | None], crew: LiveWorkers) -> Queue:
    concurrency = crew.slots(kind.name)
    column, order = _IN_LINE.get(kind.name, ("created_at", ()))
    transitions = [kind.states[verb] for verb in kind.states]
    # The statuses from which a worker can claim a row of this kind.
    origins = [
        origin
        for each in transitions
        if each.by is By.WORKER and issubclass(kind.states.model, Work) and each.target == kind.states.claimed
        for origin in each.origins
    ]
    waiting = kind.states.rows.filter(status__in=origins).order_by(*order)
    times = list(waiting.values_list(column, flat=True)[: MOST_COUNTED + 1])
    counted = times[:MOST_COUNTED]
    return Queue(
        kind=kind.name,
        name=str(kind.states.model._meta.verbose_name_plural),
        waiting=len(counted),
        is_over=len(times) > MOST_COUNTED,
        oldest_since=min(counted, default=None),
        running=len(owners),
        active=sum(owner in concurrency for owner in owners),
        concurrency=concurrency.total(),
    )
