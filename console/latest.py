"""Loads the latest runs of a user once for all parts of a page: submitted, ended and failed runs.

Each of the three needs its own query: during a backlog, the latest submitted runs are all queued, because runs start in
the order of submission; and few failures may be hidden among many successes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left

from builds.models import Configuration
from console.causes import MOST_READ
from documents.models import Document
from runs import counting, listing
from runs.counting import Minute
from runs.models import Run
from work import clock

MOST = 1000
# Submitted runs are only counted, not loaded.
MOST_COUNTED = 50_000
DAY = timedelta(days=1)
FAILED = (Run.Status.FAILED, "timed_out")
# Failures of the last hour are compared with failures of the hours before.
HOUR = timedelta(hours=1)
BY_END, BY_ID = ("-finished_at", "-pk"), ("-pk",)


class Brief(NamedTuple):
    """Those columns of an ended run that a summary needs."""

    pk: int
    status: str
    failure_type: str
    message: str
    created_at: datetime
    # None if the run was cancelled before it started.
    started_at: datetime | None
    finished_at: datetime
    configuration_id: int
    configuration__name: str
    input_document__name: str

    @property
    def outcome(self) -> str:
        return "timed_out" if self.failure_type == Run.Failure.TIMED_OUT else self.status

    @property
    def has_failed(self) -> bool:
        return self.outcome in FAILED


@dataclass(frozen=True)
class SubmittedRuns:
    minutes: Sequence[Minute]
    # The period that the runs cover.
    since: datetime
    until: datetime
    # Whether there may be more runs in the last day than were counted. If so, `since` is the submission time of the
    # earliest counted run.
    is_cut: bool

    @cached_property
    def number(self) -> int:
        return sum(minute.runs for minute in self.minutes)


@dataclass(frozen=True)
class EndedRuns:
    # Sorted by end, latest first.
    runs: Sequence[Brief]
    # The period that the runs cover.
    since: datetime
    until: datetime
    # Whether more runs ended in the requested period than were loaded. If so, `since` is the earliest end of a loaded
    # run.
    is_cut: bool

    @cached_property
    def failures(self) -> Sequence[Brief]:
        return [run for run in self.runs if run.has_failed]

    def after(self, moment: datetime) -> Sequence[Brief]:
        return [run for run in self.runs if run.finished_at >= moment]

    def is_cut_after(self, moment: datetime) -> bool:
        """Return whether runs that ended after this moment may be missing."""
        return self.is_cut and self.since >= moment


@dataclass(frozen=True)
class FailedRuns:
    # Sorted by end, latest first.
    runs: Sequence[Brief]
    # The period that the runs cover.
    since: datetime
    until: datetime

    @property
    def recent_since(self) -> datetime:
        """Return the start of the recent failures: one hour ago. If the failures cover less than two hours, there is
        too little to compare with, and all of them are recent.
        """
        return self.since if self.since > self.until - 2 * HOUR else self.until - HOUR


def submitted(person: AbstractUser, theirs: Collection[int] | None = None) -> SubmittedRuns:
    """Count the runs submitted in the last day, in the database. `theirs` are the IDs of the user's workspaces; None
    means all.
    """
    now = clock.now()
    minutes = counting.by_minute(person, now - DAY, MOST_COUNTED, theirs)
    if sum(minute.runs for minute in minutes) < MOST_COUNTED:
        return SubmittedRuns(minutes, now - DAY, now, is_cut=False)
    return SubmittedRuns(minutes, min(minute.first for minute in minutes), now, is_cut=True)


def ended(person: AbstractUser, since: datetime) -> EndedRuns:
    """Return the runs that ended after `since`, whenever they were submitted."""
    return _ended(_briefs(listing.recently_ended(person, since, MOST + 1), BY_END), since, clock.now())


def of_the_day(person: AbstractUser, theirs: Collection[int] | None = None) -> tuple[EndedRuns, FailedRuns]:
    """Return the latest ended runs, and separately the failed runs of the day, because many successes may push failures
    out of the former. The failed runs are the most recently submitted ones, plus any among the latest ended runs.
    """
    now = clock.now()
    since = now - DAY
    latest = listing.recently_ended(person, since, MOST + 1), BY_END
    failed = listing.recent_failures(person, MOST + 1, theirs), BY_ID
    if connection.vendor == "postgresql":
        briefs: Sequence[Brief] = [*_briefs(*latest), *_briefs(*failed)]
    else:
        # Load both with one query. PostgreSQL's planner would read all runs for this query.
        first, second = (rows.order_by(*order).values("pk")[: MOST + 1] for rows, order in (latest, failed))
        briefs = _briefs(Run.objects.filter(Q(pk__in=first) | Q(pk__in=second)), BY_END, 2 * (MOST + 1))
    runs = sorted({run.pk: run for run in briefs}.values(), key=lambda run: (run.finished_at, run.pk), reverse=True)
    failures = [run for run in runs if run.has_failed]
    failed_since = since
    if len(failures) > MOST:
        # More failures exist than are loaded. Any failure that was submitted before this one is missing.
        failed_since = max(since, sorted(failures, key=lambda run: run.pk, reverse=True)[MOST].finished_at)
    recent = [run for run in failures if run.finished_at >= failed_since]
    return _ended([run for run in runs if run.finished_at >= since], since, now), FailedRuns(recent, failed_since, now)


def _ended(runs: Sequence[Brief], since: datetime, now: datetime) -> EndedRuns:
    if len(runs) > MOST:
        return EndedRuns(runs[:MOST], runs[MOST - 1].finished_at, now, is_cut=True)
    return EndedRuns(runs, since, now, is_cut=False)


def _briefs(runs: Any, order: Sequence[str], most: int | None = None) -> Sequence[Brief]:
    names = {
        # Use subqueries instead of joins: with joins, SQLite might start with all documents and look up the runs of
        # each.
        "of_configuration": Configuration.objects.filter(pk=OuterRef("configuration_id")).values("name"),
        "of_document": Document.objects.filter(pk=OuterRef("input_document_id")).values("name"),
    }
    rows = runs.annotate(message=Left("error_message", MOST_READ), **{name: Subquery(of) for name, of in names.items()})
    columns = (*Brief._fields[: -len(names)], *names)
    return [Brief(*row) for row in rows.order_by(*order).values_list(*columns)[: most or MOST + 1]]
