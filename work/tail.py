"""Follows the event table by primary key. Returns each event once, in the order of ids except for late commits.

An event gets its id when it is written, but becomes visible only when its transaction commits. So higher ids may become
visible before lower ones, and reading "everything after the last id" would lose events. A position therefore remembers
the gaps between the ids that it has seen, and the reader looks at them again until no transaction can fill them. So it
does not wait for events that were rolled back.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import structlog
from django.db import connection
from django.db.models import Q

from work.models import Event
from work.sql import statements

BATCH = 500
# PostgreSQL reports which transactions are open. For other databases, a gap is given up after this time: ADE's own
# transactions take less than a second, because they write a batch of rows and wait for nothing outside the database.
OPEN_AT_MOST_SECONDS = 60.0
# A new reader looks for gaps this far below the newest id. Ids are given out in sequence, so a gap further below could
# be filled only if this many events had been written while one transaction was open.
WINDOW = 10_000
# The maximum number of gaps in memory. They pile up only if transactions roll back while another one stays open.
MOST_GAPS = 1000
# The maximum number of gaps in an HTTP header. A reader that resumes from a shortened text reads some events twice, but
# misses none.
GAPS_IN_TEXT = 50
_TEXT = re.compile(r"(\d{1,18})(?::(\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*))?", re.ASCII)
_TEXT_CHARACTERS = 20 + GAPS_IN_TEXT * 40

log = structlog.get_logger(__name__)


class EventRow(NamedTuple):
    id: int
    subject_kind: str
    subject_id: int
    sequence: int
    at: datetime
    kind: str
    from_status: str
    to_status: str
    claim_token: int
    actor: str
    level: int
    message: str
    data: Any


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the event table: all ids up to `last` have been read, except the invisible ones in `gaps`."""

    last: int = 0
    gaps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def now(cls) -> "Position":
        """Return the position from which a reader gets every event that commits from now on."""
        if connection.vendor == "sqlite":
            return cls(newest())
        rows = statements.rows(
            "WITH recent (id, previous) AS (SELECT id, lag(id) OVER (ORDER BY id) FROM events"
            " WHERE id > (SELECT max(id) FROM events) - %s)"
            " SELECT previous + 1, id - 1 FROM recent WHERE id > previous + 1"
            " UNION ALL SELECT max(id), 0 FROM recent",
            [WINDOW],
        )
        last = next((first or 0 for first, to in rows if to == 0), 0)
        gaps = sorted((first, to) for first, to in rows if to)
        return cls(last, tuple(gaps[-MOST_GAPS:]))

    @classmethod
    def from_text(cls, text: str) -> "Position":
        """Parse the text that `to_text` writes. Raise ValueError for any other text."""
        match = _TEXT.fullmatch(text) if len(text) <= _TEXT_CHARACTERS else None
        if match is None:
            raise ValueError("A position is written like 1042 or 1042:1037,1039-1040.")
        ranges = [part.partition("-") for part in (match[2] or "").split(",") if part]
        gaps = tuple((int(first), int(last or first)) for first, _, last in ranges)
        bounds = [bound for gap in gaps for bound in gap]
        # The two ends of a gap may be equal, but two gaps never touch.
        ascending = all(low <= high if n % 2 == 0 else low < high for n, (low, high) in enumerate(pairwise(bounds)))
        if not ascending or len(gaps) > GAPS_IN_TEXT or (bounds and bounds[-1] >= int(match[1])):
            raise ValueError("The gaps of a position must be in order, and below it.")
        return cls(int(match[1]), gaps)

    def to_text(self) -> str:
        last, gaps = self.last, self.gaps
        if len(gaps) > GAPS_IN_TEXT:
            last, gaps = gaps[GAPS_IN_TEXT][0] - 1, gaps[:GAPS_IN_TEXT]
        return str(last) + (":" if gaps else "") + ",".join(f"{a}-{b}" if a < b else str(a) for a, b in gaps)

    @property
    def floor(self) -> int:
        """The id up to which everything has been read for good."""
        return self.gaps[0][0] - 1 if self.gaps else self.last

    def __contains__(self, id: int) -> bool:
        """Return whether this event has been read."""
        return id <= self.last and not any(first <= id <= last for first, last in self.gaps)

    def after(self, id: int) -> "Position":
        """Return the position that follows once this event has been read too."""
        if id > self.last:
            return Position(id, (*self.gaps, (self.last + 1, id - 1)) if id > self.last + 1 else self.gaps)
        return Position(self.last, tuple(rest for gap in self.gaps for rest in _without(gap, id)))


@dataclass(frozen=True, slots=True)
class _Gap:
    first: int
    last: int
    noticed_at: float
    # Only transactions with a number below this can fill the gap. None until the first read after it was noticed.
    below: int | None = None


class _Snapshot(NamedTuple):
    newest: int
    # The number of the oldest open transaction, and a number above the numbers of all open transactions.
    oldest: int | None = None
    next: int | None = None


class Tail:
    """Reads new events. Call `read` repeatedly, from one thread and outside transactions.

    A read that finds nothing new costs one cheap statement. The events of one row come in the order of their sequence.
    """

    def __init__(self, position: Position) -> None:
        self._last = position.last
        self._gaps = [_Gap(first, last, time.monotonic()) for first, last in position.gaps]

    @property
    def position(self) -> Position:
        """The position after all events that have been read."""
        return Position(self._last, tuple((gap.first, gap.last) for gap in self._gaps))

    def read(self, limit: int = BATCH) -> list[EventRow]:
        """Return at most `limit` late events, and then at most `limit` new ones."""
        if not self._gaps and newest() <= self._last:
            return []
        snapshot = _take_snapshot(numbered=any(gap.below is None for gap in self._gaps))
        self._gaps = [replace(gap, below=snapshot.next) if gap.below is None else gap for gap in self._gaps]
        new = _read(Q(id__gt=self._last), limit) if snapshot.newest > self._last else []
        # Read the late events after the new ones: whatever committed before a new event is certain to be visible now.
        late = _read(_within(self._gaps), limit) if self._gaps else []
        for event in late:
            rests = [(gap, rest) for gap in self._gaps for rest in _without((gap.first, gap.last), event.id)]
            self._gaps = [replace(gap, first=first, last=last) for gap, (first, last) in rests]
        if len(late) == limit:
            # More late events may be left, and they must be returned before the new ones.
            return late
        self._gaps = [gap for gap in self._gaps if not _is_settled(gap, snapshot)]
        now = time.monotonic()
        for event in new:
            if event.id > self._last + 1 and connection.vendor != "sqlite":
                self._gaps.append(_Gap(self._last + 1, event.id - 1, now))
            self._last = event.id
        if len(self._gaps) > MOST_GAPS:
            log.warning("tail.gaps_forgotten", count=len(self._gaps) - MOST_GAPS, first=self._gaps[0].first)
            self._gaps = self._gaps[-MOST_GAPS:]
        return [*late, *new]


def newest() -> int:
    return statements.peek("SELECT max(id) FROM events") or 0


def _is_settled(gap: _Gap, snapshot: _Snapshot) -> bool:
    """Return whether no transaction can fill the gap any more. Call this after reading the events of the snapshot."""
    if connection.vendor == "sqlite":
        # SQLite has one writer at a time, and a rollback gives its ids back.
        return True
    if snapshot.oldest is None:
        return time.monotonic() - gap.noticed_at > OPEN_AT_MOST_SECONDS
    # A transaction writes the row before the event about it, so it has a number before it takes the event's id.
    return gap.below is not None and snapshot.oldest >= gap.below


def _take_snapshot(*, numbered: bool) -> _Snapshot:
    if connection.vendor != "postgresql":
        return _Snapshot(newest())
    # Asking for the current number uses one up, so do it only when needed. The highest number in the snapshot would not
    # do, because open transactions may have higher numbers.
    next_number = "pg_current_xact_id()::text::bigint" if numbered else "NULL"
    oldest = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    row = statements.one(f"SELECT (SELECT max(id) FROM events), {oldest}, {next_number}", [])  # noqa: S608  # constants
    assert row is not None
    return _Snapshot(row[0] or 0, row[1], row[2])


def _read(where: Q, limit: int) -> list[EventRow]:
    rows = Event.objects.filter(where).order_by("id").values_list(*EventRow._fields)
    return [EventRow(*row) for row in rows[:limit]]


def _within(gaps: list[_Gap]) -> Q:
    where = Q(id__in=[gap.first for gap in gaps if gap.first == gap.last])
    for gap in gaps:
        if gap.first < gap.last:
            where |= Q(id__range=(gap.first, gap.last))
    return where


def _without(gap: tuple[int, int], id: int) -> Iterator[tuple[int, int]]:
    first, last = gap
    if not first <= id <= last:
        yield gap
        return
    if first < id:
        yield first, id - 1
    if id < last:
        yield id + 1, last
