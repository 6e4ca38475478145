"""Descriptions of the writes that the lifecycle makes. The modules of `work/sql` perform them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from work.models import Subject

INFO = 20
WARNING = 30

Claimable = Callable[[datetime], "QuerySet[Any]"]
# Given the ids of rows, deletes what must go with their histories. Returns id -> what was deleted.
Pruning = Callable[[Sequence[int]], Mapping[int, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class EventDraft:
    """The content of an event that is yet to be written. It does not name the row that the event is about."""

    kind: str
    at: datetime
    actor: str = ""
    message: str = ""
    data: Mapping[str, Any] | None = None
    level: int = INFO
    from_status: str = ""
    to_status: str = ""

    def not_before(self, moment: datetime | None) -> "EventDraft":
        return self if moment is None or self.at >= moment else replace(self, at=moment)


@dataclass(frozen=True, slots=True)
class Change:
    """A conditional update of one row, and the event that records it."""

    model: type[Subject]
    subject_kind: str
    # The conditions of the update: column or column__lookup -> value. `where` has conditions that only the ORM can
    # express.
    guards: Mapping[str, Any]
    where: Q | None
    sets: Mapping[str, Any]
    # Columns to increment by one.
    grows: tuple[str, ...]
    # Columns to set to the time of the event, but no earlier than another column: column -> that other column.
    moments: Mapping[str, str]
    event: EventDraft
    # Events that are not transitions, written before `event` in the same transaction.
    earlier: Sequence[EventDraft] = ()

    @property
    def latest(self) -> datetime:
        """The latest time of all events of this change. `event` gets this time, because it comes last."""
        return max(event.at for event in (self.event, *self.earlier))

    def at(self, moment: datetime) -> "Change":
        """Return the same change at another time. If it grants a lease, its expiry is shifted by the same amount."""
        sets = dict(self.sets)
        if sets.get("lease_expires_at") is not None:
            sets["lease_expires_at"] += moment - self.event.at
        return replace(self, event=replace(self.event, at=moment), sets=sets)


def in_order(entries: Iterable[EventDraft], not_before: datetime | None = None) -> Iterator[EventDraft]:
    """Yield the same events, each no earlier than its predecessor. Times may go back because a clock was set back."""
    for event in entries:
        yield (event := event.not_before(not_before))
        not_before = event.at
