"""The latest runs of a person, asked for once for all that a page tells of them: of a day, and no more than so many."""

from collections.abc import Sequence
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


class Brief(NamedTuple):
    """A run, as far as a summary tells of it."""

    pk: int
    status: str
    failure_type: str
    said: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
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
class Latest:
    # The newest first.
    runs: Sequence[Brief]
    # Between these moments they were submitted.
    since: datetime
    until: datetime
    # Whether there are more than these: then `since` is when the first of these was submitted.
    is_cut: bool

    @cached_property
    def failures(self) -> Sequence[Brief]:
        """The one that failed last comes first."""
        failed = [run for run in self.runs if run.failed and run.finished_at]
        return sorted(failed, key=lambda run: (run.finished_at, run.pk), reverse=True)

    @property
    def turn(self) -> datetime:
        """From when on they are compared with those before: for an hour, or the newer half of less than two."""
        return max(self.until - HOUR, self.since + (self.until - self.since) / 2)

    def ended_since(self, moment: datetime) -> Sequence[Brief]:
        return [run for run in self.runs if run.finished_at and run.finished_at >= moment]


def of(person: AbstractUser, span: timedelta = DAY) -> Latest:
    now = clock.now()
    wanted = Wanted(created_after=now - span)
    found: Any = listing.runs(person, wanted, Piece(MOST + 1))
    rows = found.annotate(said=Left("error_message", MOST_READ)).order_by("-pk").values_list(*Brief._fields)
    runs = [Brief(*row) for row in rows[: MOST + 1]]
    if len(runs) > MOST:
        return Latest(runs[:MOST], runs[MOST - 1].created_at, now, is_cut=True)
    return Latest(runs, now - span, now, is_cut=False)
