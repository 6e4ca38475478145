"""The slots of the last day for all jobs at once. The ledger has the slots of one job, with their reasons.

The result is the same as in `schedules/ledger.py`, but needs only two queries, and a third if a slot has not run.
Nothing is stored or changed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache

from django.db.models import Q
from django.urls import NoReverseMatch, reverse

from schedules import cron, history
from schedules.history import SCHEDULED_JOB_STATES
from schedules.jobs import Job, all_jobs
from schedules.ledger import OF_DECISIONS, OF_ROWS, State
from schedules.models import JobRun, ScheduledJob
from work import clock
from work.models import Event

DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
# Job runs of all jobs, and decision events of one job.
MOST_ROWS, MOST_EVENTS = 5000, 200
NOT_RUN = frozenset({State.MISSED, State.MISFIRED})
WRONG = frozenset({State.FAILED, State.ABANDONED, *NOT_RUN})


@dataclass(frozen=True)
class Turns:
    """The slots of one job, oldest first, up to the end of today."""

    job: Job
    # None: no worker has stored the job yet.
    row: ScheduledJob | None
    slots: Sequence[tuple[datetime, State]]
    today: datetime
    running: Sequence[JobRun] = ()
    errors: Mapping[datetime, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return page_of_job(self.job.name)

    @property
    def state(self) -> str:
        if self.row is None:
            return "new"
        return "paused" if self.row.paused_at else ("running" if self.running else "scheduled")

    @cached_property
    def of_today(self) -> Sequence[tuple[datetime, State]]:
        return [(slot, state) for slot, state in self.slots if slot >= self.today]

    @property
    def counts(self) -> Mapping[str, int]:
        found = Counter(state for _, state in self.of_today)
        return {state: found[state] for state in State if found[state]}

    @property
    def hours(self) -> Sequence[Sequence[State]]:
        """Return the states of the slots for each hour of today."""
        found: list[list[State]] = [[] for _ in range(24)]
        for slot, state in self.of_today:
            found[slot.hour].append(state)
        return found

    @property
    def next_slot(self) -> datetime | None:
        now = clock.now()
        return next((slot for slot, state in self.of_today if state == State.EXPECTED and slot > now), None)

    @cached_property
    def wrong(self) -> Sequence[tuple[datetime, State]]:
        """Return what went wrong since the last success."""
        done = [slot for slot, state in self.slots if state == State.SUCCEEDED]
        since = done[-1] if done else datetime.min.replace(tzinfo=UTC)
        return [(slot, state) for slot, state in self.slots if slot > since and state in WRONG]


def of_all() -> Sequence[Turns]:
    """Return all jobs in the order of their declaration."""
    now = clock.now()
    rows = {row.name: row for row in ScheduledJob.objects.filter(retired_at__isnull=True)}
    ran: dict[str, list[JobRun]] = {}
    # The start has an index, and no slot runs before its time.
    for job_run in JobRun.objects.filter(started_at__gte=now - DAY).order_by("-started_at")[:MOST_ROWS]:
        ran.setdefault(job_run.job_name, []).append(job_run)
    found = [_of(job, rows.get(job.name), ran.get(job.name, []), now) for job in all_jobs()]
    decided = _decided([turns.row for turns in found if turns.row and _has_open(turns)], now)
    return [_with(turns, decided.get(turns.row.pk, []), now) if turns.row else turns for turns in found]


def page_of_job(name: str) -> str:
    """Return the URL of a job, or "" if the name can't be in a URL because it is none of ours."""
    with suppress(NoReverseMatch):
        return reverse("console:job", args=[name])
    return ""


def _of(job: Job, row: ScheduledJob | None, ran: Sequence[JobRun], now: datetime) -> Turns:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = max(now - DAY, row.created_at) if row else now
    slots = dict.fromkeys(_slots(row, first, today)) if row else {}
    found: dict[datetime, State | None] = slots | {each.scheduled_for: OF_ROWS[each.status] for each in ran}
    running = [each for each in ran if each.status == JobRun.CLAIMED]
    errors = {each.scheduled_for: each.error_message for each in ran if each.error_message}
    states = [(slot, found[slot] or _still_open(row, job, slot, now)) for slot in sorted(found)]
    return Turns(job, row, states, today, running, errors)


def _slots(row: ScheduledJob, first: datetime, today: datetime) -> Iterator[datetime]:
    for day in (today - DAY, today):
        yield from (slot for slot in _slots_of_day(row.cron, row.time_zone, day) if slot > first)


@lru_cache(maxsize=500)
def _slots_of_day(times: str, time_zone: str, day: datetime) -> Sequence[datetime]:
    # Finding a slot takes about 0.1 ms, so this is cached for each process and day.
    return tuple(cron.slots_between(times, time_zone, day - INSTANT, day + DAY - INSTANT))


def _still_open(row: ScheduledJob | None, job: Job, slot: datetime, now: datetime) -> State:
    """Return the state of a slot without a row; `_with` corrects it later if a decision was recorded."""
    return State.EXPECTED if slot > now or now - slot <= job.misfire_grace else State.MISSED


def _has_open(turns: Turns) -> bool:
    now = clock.now()
    return any(state in (State.MISSED, State.EXPECTED) and slot <= now for slot, state in turns.slots)


def _decided(rows: Sequence[ScheduledJob], now: datetime) -> Mapping[int, Sequence[Event]]:
    """Return the latest decisions on these jobs. They are found by sequence because older ones don't matter today."""
    if not rows:
        return {}
    of_each = (Q(subject_id=row.pk, sequence__gt=row.last_sequence - MOST_EVENTS) for row in rows)
    latest = Event.objects.filter(
        Q(*of_each, _connector=Q.OR), subject_kind=SCHEDULED_JOB_STATES.kind, at__gte=now - DAY
    )
    found: dict[int, list[Event]] = {}
    for event in latest.filter(kind__in=(*OF_DECISIONS, history.REDECLARED)).order_by("sequence"):
        found.setdefault(event.subject_id, []).append(event)
    return found


def _with(turns: Turns, events: Sequence[Event], now: datetime) -> Turns:
    slots = dict(turns.slots)
    past = [slot for slot, state in turns.slots if slot <= now and state in (State.MISSED, State.EXPECTED)]
    for event in events:
        if event.kind == history.REDECLARED:
            # Earlier slots belong to the previous schedule.
            for slot in past[: bisect_right(past, event.at)]:
                slots.pop(slot, None)
            continue
        told = event.data or {}
        first, last = (datetime.fromisoformat(told[name]) for name in ("first", "last"))
        for slot in past[bisect_left(past, first) : bisect_right(past, last)]:
            if slot in slots:
                slots[slot] = OF_DECISIONS[event.kind]
    return Turns(turns.job, turns.row, sorted(slots.items()), turns.today, turns.running, turns.errors)
