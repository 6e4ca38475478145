"""Reports the state of each slot of a job, past or future, from declarations, rows and events.

Nothing is stored or changed. A slot with a row has the state of that row. A slot without a row has the state that was
decided for it. A past slot with neither a row nor a decision was missed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import merge
from itertools import islice, takewhile
from typing import Any

from django.db.models import QuerySet

from schedules import cron, history
from schedules.history import SCHEDULED_JOB_STATES
from schedules.job_runs import request_events
from schedules.jobs import all_jobs
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock
from work.models import Event

# Earlier than any slot.
NEVER = datetime(1, 1, 2, tzinfo=UTC)
# A decision about a slot is made after it, but the clocks of workers may differ by up to this much.
SLACK = timedelta(hours=1)
SECOND = timedelta(seconds=1)
# Events per query.
BATCH = 1000


class State(StrEnum):
    EXPECTED = "expected"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"
    COALESCED = "coalesced"
    MISFIRED = "misfired"
    PASSED_OVER = "passed_over"
    MISSED = "missed"


STATE_OF_STATUS: dict[str, State] = {
    JobRun.Status.RUNNING: State.RUNNING,
    JobRun.Status.SUCCESS: State.SUCCEEDED,
    JobRun.Status.FAILED: State.FAILED,
    JobRun.Status.SKIPPED_TIMEOUT: State.ABANDONED,
}
STATE_OF_DECISION = {
    history.COALESCED: State.COALESCED,
    history.MISFIRED: State.MISFIRED,
    history.PASSED_OVER: State.PASSED_OVER,
}


@dataclass(frozen=True)
class Entry:
    slot: datetime
    state: State
    # False if this is a run that a person requested outside of the schedule.
    is_scheduled: bool = True
    job_run: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    rows_processed: int | None = None
    # The worker that ran the slot or decided about it.
    by: str = ""
    # The person who requested the run. Empty if it is due by the schedule, or if the record of the request is gone.
    asked_by: str = ""
    # The slot that a requested run replaces.
    covers: datetime | None = None
    # The later slot that this slot was merged into.
    into: datetime | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        return self.state.replace("_", " ")


@dataclass(frozen=True)
class Era:
    """The period in which a declaration was valid. The slots after `since`, up to and including `until`, follow it."""

    cron: str
    time_zone: str
    since: datetime
    until: datetime | None


def of(row: ScheduledJob, *, since: datetime | None = None, until: datetime, most: int) -> Sequence[Entry]:
    """Return the newest `most` slots of this range, newest first, with at most seven queries.

    The queries follow the order in which slots change state. So a slot that changes meanwhile is never overlooked: it
    is found in its old state or in its new one.
    """
    now = clock.now()
    row.refresh_from_db()
    slots = list(islice(_slots(eras(row), since or NEVER, until), most))
    due = _newest(DueSlot.objects.filter(job_name=row.name), since, until, most)
    job_runs = _newest(JobRun.objects.filter(job_name=row.name), since, until, most)
    entries = {each.scheduled_for: _of_due(each) for each in due} | _of_job_runs(job_runs)
    undecided = [slot for slot in slots if slot not in entries]
    entries |= {slot: entry for slot, entry in _of_decisions(row, undecided) if slot not in entries}
    # The misfire grace; zero for a job that the code no longer declares.
    declared = [] if row.retired_at else all_jobs()
    grace = next((job.misfire_grace for job in declared if job.name == row.name), timedelta(0))
    scheduled = set(slots)
    unscheduled = sorted((slot for slot in entries if slot not in scheduled), reverse=True)
    newest = []
    for slot in islice(merge(slots, unscheduled, reverse=True), most):
        entry = entries.get(slot) or _open(row, slot, now, grace)
        newest.append(entry if slot in scheduled else replace(entry, is_scheduled=False))
    return newest


def latest(row: ScheduledJob, *, past: int, coming: int) -> Sequence[Entry]:
    """Return the last `past` entries and the next `coming` slots. Requested runs also count as past entries."""
    until = clock.now()
    if row.retired_at is not None:
        coming = 0
    for _ in range(coming):
        until = cron.next_slot(row.cron, row.time_zone, until)
    return of(row, until=until, most=past + coming)


def counts(entries: Iterable[Entry]) -> Mapping[State, int]:
    numbers = Counter(entry.state for entry in entries)
    return {state: numbers[state] for state in State if numbers[state]}


def eras(row: ScheduledJob) -> Sequence[Era]:
    """Return the declarations of the job, oldest first."""
    kinds = (SCHEDULED_JOB_STATES.created, history.REDECLARED, history.RETIRED)
    events = list(_events(row).filter(kind__in=kinds))
    if not any(event.kind != history.RETIRED for event in events):
        # The job's history was deleted, or the job is older than its history.
        return [Era(row.cron, row.time_zone, row.created_at, row.retired_at)]
    ends: list[datetime | None] = [_since(event) for event in events]
    return [
        Era(_data(event)["cron"], _data(event)["time_zone"], _since(event), end)
        for event, end in zip(events, [*ends[1:], None], strict=True)
        if event.kind != history.RETIRED
    ]


def _slots(declared: Sequence[Era], since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the slots, newest first."""
    for era in reversed(declared):
        last = min(until, era.until or until)
        # Two slots are more than a second apart.
        after = max(since - SECOND, era.since)
        slots = cron.newest_first(era.cron, era.time_zone, after, last)
        yield from takewhile(lambda slot: slot >= since, slots)


def _newest(rows: "QuerySet[Any]", since: datetime | None, until: datetime, most: int) -> "QuerySet[Any]":
    rows = rows.filter(scheduled_for__lte=until)
    rows = rows.filter(scheduled_for__gte=since) if since else rows
    return rows.order_by("-scheduled_for")[:most]


def _of_due(due: DueSlot) -> Entry:
    person = f"requested by {due.asked_by}, " if due.asked_by else ""
    reason = f"{person}due since {due.due_at:%Y-%m-%d %H:%M:%S}"
    return Entry(due.scheduled_for, State.WAITING, asked_by=due.asked_by, covers=due.covers, reason=reason)


def _of_job_runs(job_runs: "QuerySet[JobRun]") -> dict[datetime, Entry]:
    rows = {row.pk: row for row in job_runs}
    # Query by the lowest and highest id, because some databases do not accept a list of thousands of ids.
    between = {"subject_id__gte": min(rows, default=0), "subject_id__lte": max(rows, default=0)}
    requests = dict(request_events().filter(**between).values_list("subject_id", "data")) if rows else {}
    entries = {}
    for id, row in rows.items():
        request = requests.get(id) or {}
        covers = request.get("covers")
        entries[row.scheduled_for] = Entry(
            slot=row.scheduled_for,
            state=STATE_OF_STATUS[row.status],
            job_run=id,
            started_at=row.started_at,
            finished_at=row.finished_at,
            rows_processed=row.rows_processed,
            by=row.worker_instance or "",
            asked_by=str(request.get("asked_by", "")),
            covers=datetime.fromisoformat(covers) if covers else None,
            reason=row.error_message,
        )
    return entries


def _of_decisions(row: ScheduledJob, slots: Sequence[datetime]) -> Iterator[tuple[datetime, Entry]]:
    """Yield each slot that was decided, with its entry. The earliest decision about a slot counts."""
    left = sorted(slots)
    if not left:
        return
    events = _events(row).filter(kind__in=STATE_OF_DECISION, at__gte=left[0] - SLACK)
    for event in events.iterator(BATCH):
        data = _data(event)
        first, last = (datetime.fromisoformat(data[name]) for name in ("first", "last"))
        into = datetime.fromisoformat(data["into"]) if data.get("into") else None
        begin, end = bisect_left(left, first), bisect_right(left, last)
        for slot in left[begin:end]:
            yield slot, Entry(slot, STATE_OF_DECISION[event.kind], by=event.actor, into=into, reason=event.message)
        del left[begin:end]
        if not left:
            return


def _open(row: ScheduledJob, slot: datetime, now: datetime, grace: timedelta) -> Entry:
    if slot > now:
        return Entry(slot, State.EXPECTED, reason="skipped while the job is paused" if row.paused_at else "")
    if slot > row.decided_until and now - slot <= grace:
        return Entry(slot, State.EXPECTED, reason="due, but the scheduler has not run since")
    return Entry(slot, State.MISSED, reason="the scheduler did not run in time")


def _events(row: ScheduledJob) -> "QuerySet[Event]":
    return Event.objects.about(SCHEDULED_JOB_STATES.kind, row.pk).order_by("sequence")


def _since(event: Event) -> datetime:
    since = _data(event).get("since")
    return datetime.fromisoformat(since) if since else event.at


def _data(event: Event) -> Mapping[str, Any]:
    return event.data or {}
