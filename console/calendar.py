"""The slots of a job as a calendar: one square for each slot, by day and hour, and a table with the reasons for their
states.

The calendar shows as many days as fit into `SQUARES` slots. If a single day has more slots, it shows hours instead.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from urllib.parse import urlencode

from django.urls import reverse

from console.templatetags.console import tone
from schedules import cron, ledger
from schedules.ledger import Entry, State
from schedules.models import ScheduledJob
from work import clock
from work.operations.commands import moment

# The number is limited because finding a slot of a schedule takes about 0.1 ms.
SQUARES = 300
# Leaves room for slots that people requested outside of the schedule.
MOST = SQUARES + 100
# Rows of the table. Further slots can be reached through the calendar's links.
LINES = 50
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
INSTANT = timedelta(microseconds=1)
# Longest label of a square, in characters.
LONGEST = 200
# Number of days shown for a job that doesn't run every day, and the highest number for other jobs.
SPARSE, MOST_DAYS = 92, 28
# An ordinary day in the middle of a week and of a month, for estimating a job's slots per day.
ANY_DAY = datetime(2026, 1, 14, tzinfo=UTC)
# Each state has a sign, so that it can be recognised without colours.
SIGNS = {
    State.EXPECTED: "·",
    State.WAITING: "W",
    State.RUNNING: "R",
    State.SUCCEEDED: "✓",
    State.FAILED: "F",
    State.ABANDONED: "A",
    State.COALESCED: "C",
    State.MISFIRED: "X",
    State.PASSED_OVER: "P",
    State.MISSED: "!",
}
# States in which a slot has not run but can still be run.
RUNNABLE = frozenset({State.MISSED, State.MISFIRED, State.COALESCED, State.PASSED_OVER})


@dataclass(frozen=True)
class Square:
    """A slot with everything that the template shows. All of it is computed here, because templates are slow and there
    are hundreds of squares.
    """

    entry: Entry
    sign: str
    look: str
    # For example: 12:15 missed: the scheduler did not run in time
    label: str
    # URL of the page of the slot's run, or of the form to run the slot; empty if there is neither.
    href: str

    @property
    def state(self) -> str:
        return self.entry.words

    @property
    def can_run(self) -> bool:
        return can_run(self.entry)

    @property
    def is_well(self) -> bool:
        return self.entry.state == State.SUCCEEDED


@dataclass(frozen=True)
class Cell:
    label: str
    squares: Sequence[Square]


@dataclass(frozen=True)
class Row:
    """A day, or an hour for a job with very many slots."""

    label: str
    until: datetime
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Stretch:
    """Consecutive slots that are described in the same words, such as "succeeded"."""

    newest: Square
    first: datetime
    number: int
    rows_processed: int | None


@dataclass(frozen=True)
class Window:
    since: datetime
    # Exclusive.
    until: datetime
    is_of_hours: bool

    @property
    def earlier(self) -> datetime:
        return self.since - INSTANT

    @property
    def later(self) -> datetime | None:
        """Return the start of the next window, or None if that lies entirely in the future."""
        now = clock.now()
        return min(2 * (self.until - self.since) + self.since - INSTANT, now) if self.until <= now else None


@dataclass(frozen=True)
class Calendar:
    window: Window
    columns: Sequence[str]
    rows: Sequence[Row]
    counts: Mapping[str, tuple[str, int]]
    lines: Sequence[Stretch]
    # The slot with which the rows continue that don't fit into the table; None if all fit.
    older: datetime | None
    chosen: Square | None
    is_cut: bool


def calendar_of(row: ScheduledJob, last: str, slot: str, *, each: bool = False) -> Calendar:
    """Return the calendar whose last day or hour contains `last` (default: now), and the chosen slot. With `each`,
    every run gets its own row in the table.
    """
    window = window_of(row, moment_of(last) or clock.now())
    entries = ledger.of(row, since=window.since, until=window.until - INSTANT, most=MOST) if row.pk else []
    squares = [_square(entry, row.name) for entry in entries]
    columns = [] if window.is_of_hours else sorted({f"{square.entry.slot:%H}" for square in squares})
    lines = _stretches(squares, each=each)
    chosen = moment_of(slot)
    return Calendar(
        window=window,
        columns=columns,
        rows=_rows_by_hour(squares) if window.is_of_hours else _rows_by_day(squares, columns),
        counts={state.replace("_", " "): (SIGNS[state], n) for state, n in ledger.counts(entries).items()},
        lines=lines[:LINES],
        older=lines[LINES].newest.entry.slot if len(lines) > LINES else None,
        chosen=next((square for square in squares if square.entry.slot == chosen), None),
        is_cut=len(entries) == MOST,
    )


def moment_of(text: str) -> datetime | None:
    """Parse a time; return None if it is not valid."""
    try:
        return moment(text)
    except (ArgumentTypeError, OverflowError):
        return None


def window_of(row: ScheduledJob, last: datetime) -> Window:
    a_day = slots_of_a_day(row.cron, row.time_zone)
    if a_day > SQUARES:
        until = last.replace(minute=0, second=0, microsecond=0) + HOUR
        return Window(until - SQUARES * 24 // a_day * HOUR, until, is_of_hours=True)
    until = last.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    days = min(SQUARES // a_day, MOST_DAYS) if a_day else SPARSE
    return Window(until - days * DAY, until, is_of_hours=False)


@lru_cache(maxsize=100)
def slots_of_a_day(times: str, time_zone: str) -> int:
    return len(list(cron.slots_between(times, time_zone, ANY_DAY - INSTANT, ANY_DAY + DAY - INSTANT)))


def can_run(entry: Entry) -> bool:
    return entry.state in RUNNABLE and entry.is_scheduled


def _square(entry: Entry, name: str) -> Square:
    by_hand = "" if entry.is_scheduled else ", outside the schedule"
    reason = f": {entry.reason}" if entry.reason else ""
    label = f"{entry.slot:%H:%M} {entry.words}{by_hand}{reason}"[:LONGEST]
    look = f"is-{tone(entry.state)} of-{entry.state.replace('_', '-')}"
    href, slot = "", entry.slot.isoformat()
    if entry.job_run:
        href = reverse("console:job_run", args=[name, entry.job_run])
    elif can_run(entry):
        href = f"?{urlencode({'slot': slot, 'until': slot})}"
    return Square(entry, SIGNS[entry.state], look, label, href)


def _rows_by_day(squares: Sequence[Square], columns: Sequence[str]) -> list[Row]:
    rows = []
    for _, group in groupby(squares, lambda square: square.entry.slot.date()):
        of_day = list(group)
        by_hour: dict[str, list[Square]] = {hour: [] for hour in columns}
        for square in reversed(of_day):
            by_hour[f"{square.entry.slot:%H}"].append(square)
        slot = of_day[0].entry.slot
        rows.append(Row(f"{slot:%a %d %b}", slot, [Cell(hour, each) for hour, each in by_hour.items()]))
    return rows


def _rows_by_hour(squares: Sequence[Square]) -> list[Row]:
    rows = []
    for label, group in groupby(squares, lambda square: f"{square.entry.slot:%a %H}:00"):
        of_hour = list(group)
        rows.append(Row(label, of_hour[0].entry.slot, [Cell("", of_hour[::-1])]))
    return rows


def _stretches(squares: Sequence[Square], *, each: bool) -> list[Stretch]:
    def words(square: Square) -> tuple[object, ...]:
        entry = square.entry
        job_run = entry.job_run if each or entry.state != State.SUCCEEDED else None
        return (entry.state, job_run, entry.is_scheduled, entry.asked_by, entry.covers, entry.into, entry.reason)

    stretches = []
    for _, group in groupby(squares, words):
        alike = list(group)
        counts = [square.entry.rows_processed for square in alike if square.entry.rows_processed is not None]
        rows = sum(counts) if counts else None
        stretches.append(Stretch(alike[0], alike[-1].entry.slot, len(alike), rows))
    return stretches
