"""The latest runs of a person, asked for once for all that a page tells of them: those that were submitted, and by
themselves those that have ended. Runs begin in the order in which they came: behind a backlog, the newest ones wait.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractUser
from django.db.models.functions import Left

from console.causes import MOST_READ
from runs import listing
from runs.listing import Piece, Wanted
from runs.models import Run
from work import clock

MOST = 1000
DAY = timedelta(days=1)
FAILED = frozenset({"failed", "timed_out"})
# Newer ones are compared with those before them, a last hour with the hours before it.
HOUR = timedelta(hours=1)


class Submission(NamedTuple):
    """A run, as far as a chart tells of it."""

    status: str
    failure_type: str
    created_at: datetime

    @property
    def outcome(self) -> str:
        return _outcome(self)


class Brief(NamedTuple):
    """A run that has ended, as far as a summary tells of it."""

    pk: int
    status: str
    failure_type: str
    said: str
    created_at: datetime
    # None: it was cancelled before.
    started_at: datetime | None
    finished_at: datetime
    configuration_id: int
    configuration__name: str
    input_document__name: str

    @property
    def outcome(self) -> str:
        return _outcome(self)

    @property
    def failed(self) -> bool:
        return self.outcome in FAILED


@dataclass(frozen=True)
class Submitted:
    # The newest first.
    runs: Sequence[Submission]
    # Between these moments.
    since: datetime
    until: datetime
    # Whether there are more than these: then `since` is when the first of these was submitted.
    is_cut: bool


@dataclass(frozen=True)
class Ended:
    # The one that ended last comes first.
    runs: Sequence[Brief]
    # Between these moments.
    since: datetime
    until: datetime
    # Whether there are more than these: then `since` is when the first of these ended.
    is_cut: bool

    @cached_property
    def failures(self) -> Sequence[Brief]:
        return [run for run in self.runs if run.failed]

    @property
    def turn(self) -> datetime:
        """From when on they are compared with those before: for an hour, or the newer half of less than two."""
        return max(self.until - HOUR, self.since + (self.until - self.since) / 2)

    def after(self, moment: datetime) -> Sequence[Brief]:
        return [run for run in self.runs if run.finished_at >= moment]

    def is_cut_after(self, moment: datetime) -> bool:
        """Whether more have ended from this moment on than are known of."""
        return self.is_cut and self.since >= moment


def submitted(person: AbstractUser, theirs: Collection[int] | None = None) -> Submitted:
    now = clock.now()
    found: Any = listing.runs(person, Wanted(created_after=now - DAY), Piece(MOST + 1), theirs)
    rows = found.order_by("-pk").values_list(*Submission._fields)
    runs = [Submission(*row) for row in rows[: MOST + 1]]
    if len(runs) > MOST:
        return Submitted(runs[:MOST], runs[MOST - 1].created_at, now, is_cut=True)
    return Submitted(runs, now - DAY, now, is_cut=False)


def ended(person: AbstractUser, since: datetime) -> Ended:
    """However long ago they were submitted."""
    now = clock.now()
    found: Any = listing.ended(person, since, MOST + 1)
    rows = found.annotate(said=Left("error_message", MOST_READ)).order_by("-finished_at", "-pk")
    runs = [Brief(*row) for row in rows.values_list(*Brief._fields)[: MOST + 1]]
    if len(runs) > MOST:
        return Ended(runs[:MOST], runs[MOST - 1].finished_at, now, is_cut=True)
    return Ended(runs, since, now, is_cut=False)


def _outcome(run: Submission | Brief) -> str:
    return "timed_out" if run.failure_type == Run.Failure.TIMED_OUT else run.status
