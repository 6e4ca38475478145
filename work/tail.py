"""The table of events, followed by its primary key: each event comes once, in the order of the ids. What commits late
comes late; what is rolled back never comes, and is not waited for.

An id is taken when an event is written, and can be read when its transaction commits. So ids above can be read before
those below, and "everything above the last one" would lose some. A position remembers these gaps, and they are looked
at again until nobody can fill them any more.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import structlog
from django.db import connection
from django.db.models import Q

from work import statements
from work.models import Event

BATCH = 500
# Databases that tell which transactions are open are asked. Of others it is known only that none of ADE's takes a
# second: they write a batch of rows and wait for nobody outside.
OPEN_AT_MOST_SECONDS = 60.0
# How far below the newest event somebody who begins now looks for what is being written. Ids are taken one after the
# other: so many events would have to be written while one transaction is open.
WINDOW = 10_000
# More are not kept in memory. They come of transactions that were rolled back while another one has been open.
MOST_GAPS = 1000
# What a header may carry. Whoever goes on from a text that has left some out reads some events again, and misses none.
GAPS_IN_TEXT = 50
_TEXT = re.compile(r"(\d{1,18})(?::(\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*))?", re.ASCII)
_TEXT_CHARACTERS = 20 + GAPS_IN_TEXT * 40

log = structlog.get_logger(__name__)


class Seen(NamedTuple):
    """One event, as values."""

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
    """All up to `last` have been read, but for `gaps`: ids, from and to, of which nothing was there."""

    last: int = 0
    gaps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def now(cls) -> "Position":
        """Whatever commits from now on comes after it."""
        return _now()

    @classmethod
    def from_text(cls, text: str) -> "Position":
        """Raises ValueError for what `to_text` has not written."""
        match = _TEXT.fullmatch(text) if len(text) <= _TEXT_CHARACTERS else None
        if match is None:
            raise ValueError("expected a position, as 1042 or 1042:1037,1039-1040")
        gaps = tuple(_range(part) for part in (match[2] or "").split(",") if part)
        bounds = [bound for gap in gaps for bound in gap]
        # The two ends of one gap may be the same; two gaps never touch.
        ascending = all(low <= high if n % 2 == 0 else low < high for n, (low, high) in enumerate(pairwise(bounds)))
        if not ascending or len(gaps) > GAPS_IN_TEXT or (bounds and bounds[-1] >= int(match[1])):
            raise ValueError("expected the gaps of a position in order, and below it")
        return cls(int(match[1]), gaps)

    def to_text(self) -> str:
        last, gaps = self.last, self.gaps
        if len(gaps) > GAPS_IN_TEXT:
            last, gaps = gaps[GAPS_IN_TEXT][0] - 1, gaps[:GAPS_IN_TEXT]
        return str(last) + (":" if gaps else "") + ",".join(f"{a}-{b}" if a < b else str(a) for a, b in gaps)

    @property
    def floor(self) -> int:
        """Nothing up to here is read again."""
        return self.gaps[0][0] - 1 if self.gaps else self.last

    def __contains__(self, id: int) -> bool:
        """Whether this event has been read."""
        return id <= self.last and not any(first <= id <= last for first, last in self.gaps)

    def after(self, id: int) -> "Position":
        """When this event has been read too."""
        if id > self.last:
            return Position(id, (*self.gaps, (self.last + 1, id - 1)) if id > self.last + 1 else self.gaps)
        return Position(self.last, tuple(rest for gap in self.gaps for rest in _without(gap, id)))


@dataclass(frozen=True, slots=True)
class _Gap:
    first: int
    last: int
    noticed_at: float
    # Transactions that may fill it have a number below this one. Found out at the look after it was noticed.
    below: int | None = None


class _Look(NamedTuple):
    newest: int
    # The numbers of the oldest transaction that is open, and of one that began after all that are.
    oldest: int | None = None
    next: int | None = None


class Tail:
    """Read again and again, by one thread, outside of transactions. Costs one cheap statement when there is nothing.

    Events of one subject come in the order of their sequence.
    """

    def __init__(self, position: Position) -> None:
        self._last = position.last
        self._gaps = [_Gap(first, last, time.monotonic()) for first, last in position.gaps]

    @property
    def position(self) -> Position:
        """Behind what was read."""
        return Position(self._last, tuple((gap.first, gap.last) for gap in self._gaps))

    def read(self, limit: int = BATCH) -> list[Seen]:
        """What is there by now: what was late first. At most twice `limit`."""
        if not self._gaps and newest() <= self._last:
            return []
        look = _look(numbered=any(gap.below is None for gap in self._gaps))
        self._gaps = [replace(gap, below=look.next) if gap.below is None else gap for gap in self._gaps]
        new = _seen(Q(id__gt=self._last), limit) if look.newest > self._last else []
        # After the new ones: whatever was committed before one of these can be seen now.
        late = _seen(_within(self._gaps), limit) if self._gaps else []
        self._fill(late)
        if len(late) == limit:
            # Some of what is late may be left, and belong before something new.
            return late
        self._gaps = [gap for gap in self._gaps if not _is_settled(gap, look)]
        self._go_on(new)
        return [*late, *new]

    def _fill(self, late: Sequence[Seen]) -> None:
        for event in late:
            self._gaps = [rest for gap in self._gaps for rest in _split(gap, event.id)]

    def _go_on(self, new: Sequence[Seen]) -> None:
        now = time.monotonic()
        for event in new:
            if event.id > self._last + 1 and connection.vendor != "sqlite":
                self._gaps.append(_Gap(self._last + 1, event.id - 1, now))
            self._last = event.id
        if len(self._gaps) > MOST_GAPS:
            log.warning("tail.gaps_forgotten", count=len(self._gaps) - MOST_GAPS, first=self._gaps[0].first)
            self._gaps = self._gaps[-MOST_GAPS:]


def newest() -> int:
    return statements.peek("SELECT max(id) FROM events") or 0


def _is_settled(gap: _Gap, look: _Look) -> bool:
    """Whether nobody can fill it any more; asked when what was there at that look has been read."""
    if connection.vendor == "sqlite":
        # One writer at a time, and a rollback gives its ids back.
        return True
    if look.oldest is None:
        return time.monotonic() - gap.noticed_at > OPEN_AT_MOST_SECONDS
    # An event is written behind the row that it is about, so its transaction has a number before it takes the id.
    return gap.below is not None and look.oldest >= gap.below


def _look(*, numbered: bool) -> _Look:
    if connection.vendor != "postgresql":
        return _Look(newest())
    # Asking for a number takes one: only when it is needed. The highest one of a snapshot would not do, others that
    # are open may have higher ones.
    next_number = "pg_current_xact_id()::text::bigint" if numbered else "NULL"
    oldest = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    row = statements.one(f"SELECT (SELECT max(id) FROM events), {oldest}, {next_number}", [])  # noqa: S608  # constants
    assert row is not None
    return _Look(row[0] or 0, row[1], row[2])


def _now() -> Position:
    if connection.vendor == "sqlite":
        return Position(newest())
    found = statements.rows(
        "WITH recent (id, previous) AS (SELECT id, lag(id) OVER (ORDER BY id) FROM events"
        " WHERE id > (SELECT max(id) FROM events) - %s)"
        " SELECT previous + 1, id - 1 FROM recent WHERE id > previous + 1"
        " UNION ALL SELECT max(id), 0 FROM recent",
        [WINDOW],
    )
    last = next((first or 0 for first, to in found if to == 0), 0)
    gaps = sorted((first, to) for first, to in found if to)
    return Position(last, tuple(gaps[-MOST_GAPS:]))


def _seen(where: Q, limit: int) -> list[Seen]:
    rows = Event.objects.filter(where).order_by("id").values_list(*Seen._fields)
    return [Seen(*row) for row in rows[:limit]]


def _within(gaps: Iterable[_Gap]) -> Q:
    gaps = list(gaps)
    where = Q(id__in=[gap.first for gap in gaps if gap.first == gap.last])
    for gap in gaps:
        if gap.first < gap.last:
            where |= Q(id__range=(gap.first, gap.last))
    return where


def _split(gap: _Gap, id: int) -> Iterator[_Gap]:
    for first, last in _without((gap.first, gap.last), id):
        yield replace(gap, first=first, last=last)


def _without(gap: tuple[int, int], id: int) -> Iterator[tuple[int, int]]:
    first, last = gap
    if not first <= id <= last:
        yield gap
        return
    if first < id:
        yield first, id - 1
    if id < last:
        yield id + 1, last


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)
