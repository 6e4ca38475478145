"""The slots of all jobs in the last day. The ledger shows the slots of one job, with reasons.

The states are the same as in `schedules/ledger.py`, but need only two queries, and a third if a slot has not run.
Nothing is stored or changed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache

from django.db.models import Q

from console.subjects import url_of_job
from schedules import cron, history
from schedules.history import SCHEDULED_JOB_STATES
from schedules.jobs import Job, all_jobs
from schedules.ledger import STATE_OF_DECISION, STATE_OF_STATUS, State
from schedules.models import JobRun, ScheduledJob
from work import clock
from work.models import Event

DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
# Limits for the job runs of all jobs, and for the events of each job among which decisions are looked for.
MOST_ROWS, MOST_EVENTS = 5000, 200
NOT_RUN = frozenset({State.MISSED, State.MISFIRED})
WRONG = frozenset({State.FAILED, State.ABANDONED, *NOT_RUN})


@dataclass(frozen=True)
class JobSlots:
    """The slots of one job, oldest first, up to the end of today."""

    job: Job
    # None if no worker has stored the job yet.
    row: ScheduledJob | None
    slots: Sequence[tuple[datetime, State]]
    today: datetime
    running: Sequence[JobRun] = ()
    errors: Mapping[datetime, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return url_of_job(self.job.name)

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
        counts = Counter(state for _, state in self.of_today)
        return {state: counts[state] for state in State if counts[state]}

    @property
    def hours(self) -> Sequence[Sequence[State]]:
        """Return the states of today's slots, grouped by hour."""
        hours: list[list[State]] = [[] for _ in range(24)]
        for slot, state in self.of_today:
            hours[slot.hour].append(state)
        return hours

    @property
    def next_slot(self) -> datetime | None:
        now = clock.now()
        return next((slot for slot, state in self.of_today if state == State.EXPECTED and slot > now), None)

    @cached_property
    def failures(self) -> Sequence[tuple[datetime, State]]:
        """Return the slots that have gone wrong since the last success."""
        successes = [slot for slot, state in self.slots if state == State.SUCCEEDED]
        since = successes[-1] if successes else datetime.min.replace(tzinfo=UTC)
        return [(slot, state) for slot, state in self.slots if slot > since and state in WRONG]

    def open_slots(self, now: datetime) -> list[datetime]:
        """Return the past slots without a job run. Events may record a decision on them."""
        return [slot for slot, state in self.slots if state in (State.MISSED, State.EXPECTED) and slot <= now]


def of_all() -> Sequence[JobSlots]:
    """Return the slots of all declared jobs, in the order of declaration."""
    now = clock.now()
    rows = {row.name: row for row in ScheduledJob.objects.filter(retired_at__isnull=True)}
    job_runs: dict[str, list[JobRun]] = {}
    # Filter by the start, which has an index: no slot starts before its time, so the slots of the last day are
    # included.
    for job_run in JobRun.objects.filter(started_at__gte=now - DAY).order_by("-started_at")[:MOST_ROWS]:
        job_runs.setdefault(job_run.job_name, []).append(job_run)
    every = [_of(job, rows.get(job.name), job_runs.get(job.name, []), now) for job in all_jobs()]
    decisions = _decisions([each.row for each in every if each.row and each.open_slots(now)], now)
    return [_with(each, decisions.get(each.row.pk, []), now) if each.row else each for each in every]


def _of(job: Job, row: ScheduledJob | None, job_runs: Sequence[JobRun], now: datetime) -> JobSlots:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    states: dict[datetime, State] = {}
    if row:
        first = max(now - DAY, row.created_at)
        days = (_slots_of_day(row.cron, row.time_zone, day) for day in (today - DAY, today))
        # If a decision was recorded, `_with` corrects the state later.
        states = {
            slot: State.EXPECTED if slot > now or now - slot <= job.misfire_grace else State.MISSED
            for slots in days
            for slot in slots
            if slot > first
        }
    states |= {each.scheduled_for: STATE_OF_STATUS[each.status] for each in job_runs}
    running = [each for each in job_runs if each.status == JobRun.CLAIMED]
    errors = {each.scheduled_for: each.error_message for each in job_runs if each.error_message}
    return JobSlots(job, row, sorted(states.items()), today, running, errors)


@lru_cache(maxsize=500)
def _slots_of_day(times: str, time_zone: str, day: datetime) -> Sequence[datetime]:
    # Cached in each process, because finding a slot takes about 0.1 ms.
    return tuple(cron.slots_between(times, time_zone, day - INSTANT, day + DAY - INSTANT))


def _decisions(rows: Sequence[ScheduledJob], now: datetime) -> Mapping[int, Sequence[Event]]:
    """Return the decisions on slots of these jobs in the last day. Only the latest events of each job are searched."""
    if not rows:
        return {}
    of_each = (Q(subject_id=row.pk, sequence__gt=row.last_sequence - MOST_EVENTS) for row in rows)
    latest = Event.objects.filter(
        Q(*of_each, _connector=Q.OR), subject_kind=SCHEDULED_JOB_STATES.kind, at__gte=now - DAY
    )
    decisions: dict[int, list[Event]] = {}
    for event in latest.filter(kind__in=(*STATE_OF_DECISION, history.REDECLARED)).order_by("sequence"):
        decisions.setdefault(event.subject_id, []).append(event)
    return decisions


def _with(job_slots: JobSlots, events: Sequence[Event], now: datetime) -> JobSlots:
    slots, past = dict(job_slots.slots), job_slots.open_slots(now)
    for event in events:
        if event.kind == history.REDECLARED:
            # Slots before this event belong to the previous schedule.
            for slot in past[: bisect_right(past, event.at)]:
                slots.pop(slot, None)
            continue
        data = event.data or {}
        first, last = (datetime.fromisoformat(data[name]) for name in ("first", "last"))
        for slot in past[bisect_left(past, first) : bisect_right(past, last)]:
            if slot in slots:
                slots[slot] = STATE_OF_DECISION[event.kind]
    return replace(job_slots, slots=sorted(slots.items()))
