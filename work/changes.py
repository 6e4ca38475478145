"""What the lifecycle asks the database to write, apart from how: see `work/sql.py` and `work/portable.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from work.models import Subject

INFO = 20
WARNING = 30

Claimable = Callable[[datetime], "QuerySet[Any]"]
# Deletes what else goes with the history of these rows, and answers what that was, by id.
Pruning = Callable[[Sequence[int]], Mapping[int, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says, apart from whom it is about."""

    kind: str
    at: datetime
    actor: str = ""
    message: str = ""
    data: Mapping[str, Any] | None = None
    level: int = INFO
    from_status: str = ""
    to_status: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A conditional update of one row and its event."""

    model: type[Subject]
    subject_kind: str
    # What must hold: column or column__lookup -> value, and whatever else only the ORM can say.
    guards: Mapping[str, Any]
    where: Q | None
    sets: Mapping[str, Any]
    # Columns that grow by one.
    grows: tuple[str, ...]
    # Columns that are set to the moment of the event, but never to one before that of the other column.
    moments: Mapping[str, str]
    told: Told
    # Events that are no moves and come before it, in its transaction.
    earlier: Sequence[Told] = ()
