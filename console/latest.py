"""Loads the latest runs of a user once for all parts of a page: submitted runs, ended runs and failed runs.

They are separate queries. Runs start in the order of submission, so during a backlog the newest runs are all queued;
and failures may be few among many successes.
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
FAILED = frozenset({"failed", "timed_out"})
# The failures of the last hour are compared with the failures of the hours before.
HOUR = timedelta(hours=1)
BY_END, BY_ID = ("-finished_at", "-pk"), ("-pk",)


class Brief(NamedTuple):
    """The columns of an ended run that a summary needs."""

    pk: int
    status: str
    failure_type: str
    said: str
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
    def failed(self) -> bool:
        return self.outcome in FAILED


@dataclass(frozen=True)
class Submitted:
    minutes: Sequence[Minute]
    # The period.
    since: datetime
    until: datetime
    # Whether there may be more runs in the period. Then `since` is the submission time of the earliest counted run.
    is_cut: bool

    @cached_property
    def number(self) -> int:
        return sum(minute.runs for minute in self.minutes)


@dataclass(frozen=True)
class Ended:
    # The latest end first.
    runs: Sequence[Brief]
    # The period.
    since: datetime
    until: datetime
    # Whether there are more runs in the period. Then `since` is the earliest end of a loaded run.
    is_cut: bool

    @cached_property
    def failures(self) -> Sequence[Brief]:
        return [run for run in self.runs if run.failed]

    def after(self, moment: datetime) -> Sequence[Brief]:
        return [run for run in self.runs if run.finished_at >= moment]

    def is_cut_after(self, moment: datetime) -> bool:
        """Return whether more runs may have ended since this moment than were loaded."""
        return self.is_cut and self.since >= moment


@dataclass(frozen=True)
class Failed:
    # The latest end first.
    runs: Sequence[Brief]
    # The period.
    since: datetime
    until: datetime

    @property
    def turn(self) -> datetime:
        """Return the start of the recent period, normally the last hour. If the failures cover hardly more than an
        hour, there is nothing to compare with and all of them are recent.
        """
        return self.since if self.since > self.until - 2 * HOUR else self.until - HOUR


def submitted(person: AbstractUser, theirs: Collection[int] | None = None) -> Submitted:
    """Count submitted runs in the database. `theirs` are the workspaces of the user; None means all."""
    now = clock.now()
    minutes = counting.by_minute(person, now - DAY, MOST_COUNTED, theirs)
    if sum(minute.runs for minute in minutes) < MOST_COUNTED:
        return Submitted(minutes, now - DAY, now, is_cut=False)
    return Submitted(minutes, min(minute.first for minute in minutes), now, is_cut=True)


def ended(person: AbstractUser, since: datetime) -> Ended:
    """Return the runs that ended since then, whenever they were submitted."""
    return _ended(_briefs(listing.ended(person, since, MOST + 1), BY_END), since, clock.now())


def of_the_day(person: AbstractUser, theirs: Collection[int] | None = None) -> tuple[Ended, Failed]:
    """Return the latest ended runs, and separately the failed ones, which may be missing among many successes. The
    failures are the latest submitted ones, plus any among the latest ended runs.
    """
    now = clock.now()
    since = now - DAY
    of_all = listing.ended(person, since, MOST + 1), BY_END
    of_failed = listing.failed(person, MOST + 1, theirs), BY_ID
    if connection.vendor == "postgresql":
        found: Sequence[Brief] = [*_briefs(*of_all), *_briefs(*of_failed)]
    else:
        # One query for both. On PostgreSQL the planner would read all runs for it.
        first, second = (rows.order_by(*order).values("pk")[: MOST + 1] for rows, order in (of_all, of_failed))
        found = _briefs(Run.objects.filter(Q(pk__in=first) | Q(pk__in=second)), BY_END, 2 * (MOST + 1))
    runs = sorted({run.pk: run for run in found}.values(), key=lambda run: (run.finished_at, run.pk), reverse=True)
    return _ended([run for run in runs if run.finished_at >= since], since, now), _failed(runs, since, now)


def _ended(runs: Sequence[Brief], since: datetime, now: datetime) -> Ended:
    if len(runs) > MOST:
        return Ended(runs[:MOST], runs[MOST - 1].finished_at, now, is_cut=True)
    return Ended(runs, since, now, is_cut=False)


def _failed(runs: Sequence[Brief], since: datetime, now: datetime) -> Failed:
    failures = [run for run in runs if run.failed]
    by_id = sorted(failures, key=lambda run: run.pk, reverse=True)
    if len(by_id) > MOST and by_id[MOST].finished_at >= since:
        since = by_id[MOST].finished_at
    return Failed([run for run in failures if run.finished_at >= since], since, now)


def _briefs(found: Any, order: Sequence[str], most: int | None = None) -> Sequence[Brief]:
    names = {
        # Subqueries instead of joins: SQLite might start with all documents and look up the runs of each.
        "of_configuration": Configuration.objects.filter(pk=OuterRef("configuration_id")).values("name"),
        "of_document": Document.objects.filter(pk=OuterRef("input_document_id")).values("name"),
    }
    rows = found.annotate(said=Left("error_message", MOST_READ), **{name: Subquery(of) for name, of in names.items()})
    columns = (*Brief._fields[: -len(names)], *names)
    return [Brief(*row) for row in rows.order_by(*order).values_list(*columns)[: most or MOST + 1]]
