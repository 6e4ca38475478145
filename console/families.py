"""Failures grouped by their causes: see `console/causes.py`. Of a bounded number of the last ones, so that a page costs
the same however many runs there are; what it says of "all" is of those.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models.functions import Left

from builds.lifecycle import BUILD
from builds.models import Build, Configuration
from console.causes import MOST_READ, cause_of
from console.models import FailureNote
from documents.models import User
from runs import listing
from runs.lifecycle import RUN
from runs.listing import Piece, Wanted
from runs.models import Run
from work import clock

# Of these runs, and of the builds that failed among the last ones.
MOST_RUNS, MOST_BUILDS, LAST_BUILDS = 1000, 200, 2000
FAILED = ("failed", "timed_out")
HOUR = timedelta(hours=1)
# In the last hour; fewer may be chance. And so many times as often as before.
LEAST_RISING, TIMES = 3, 2.0
MOST_EXAMPLES = 3


class Failure(NamedTuple):
    """A failed run or build, as far as its family tells of it."""

    kind: str
    id: int
    failure_type: str
    message: str
    at: datetime
    configuration_id: int
    workspace_id: int


@dataclass(frozen=True)
class Family:
    key: str
    kind: str
    failure_type: str
    # What the messages of all have in common.
    cause: str
    # The newest first.
    failures: Sequence[Failure]
    # Each with how many of them are of it, the most first.
    configurations: Sequence[tuple[str, int, int]]
    notes: Sequence[FailureNote]
    now: datetime
    # From when on failures were looked at: in the hours from then to the last one it is seen how often it was before.
    since: datetime

    @property
    def count(self) -> int:
        return len(self.failures)

    @property
    def is_of_runs(self) -> bool:
        return self.kind == RUN.kind

    @property
    def failure_name(self) -> str:
        return dict(Run.Failure.choices).get(self.failure_type, self.failure_type.lower().replace("_", " "))

    @property
    def first_at(self) -> datetime:
        return min(failure.at for failure in self.failures)

    @property
    def last_at(self) -> datetime:
        return max(failure.at for failure in self.failures)

    @property
    def example(self) -> Failure:
        return self.failures[0]

    @property
    def examples(self) -> Sequence[Failure]:
        """The newest ones, each with another message."""
        return list({failure.message: failure for failure in reversed(self.failures)}.values())[::-1][:MOST_EXAMPLES]

    @property
    def workspace_ids(self) -> frozenset[int]:
        return frozenset(failure.workspace_id for failure in self.failures)

    @cached_property
    def in_the_last_hour(self) -> int:
        return sum(failure.at > self.now - HOUR for failure in self.failures)

    @property
    def hourly_before(self) -> float:
        """On average, in the hours before the last one."""
        hours = max(1.0, (self.now - HOUR - self.since) / HOUR)
        return (self.count - self.in_the_last_hour) / hours

    @property
    def is_rising(self) -> bool:
        return self.in_the_last_hour >= max(LEAST_RISING, TIMES * self.hourly_before)


@dataclass(frozen=True)
class Families:
    """Those that rise come first, then the largest ones."""

    all: Sequence[Family]
    runs: int
    builds: int
    # Whether more failed than were looked at.
    is_cut: bool

    @property
    def rising(self) -> Sequence[Family]:
        return [family for family in self.all if family.is_rising]

    def find(self, key: str) -> Family | None:
        return next((family for family in self.all if family.key == key), None)


def families_of(user: User, wanted: Wanted | None = None) -> Families:
    """Of those that this person may see; runs only when something is wanted of them."""
    wanted = wanted or Wanted()
    runs = _failed_runs(user, wanted)
    builds = _failed_builds(user) if wanted == Wanted() else []
    grouped = _grouped([*runs[:MOST_RUNS], *builds])
    named = _configurations(user, {id for of_one in grouped.values() for id in _ids(of_one)})
    notes = _notes(user, grouped)
    now, since = clock.now(), {RUN.kind: _since(runs[:MOST_RUNS]), BUILD.kind: _since(builds)}
    found = [
        Family(
            *(key, of_one[0].kind, of_one[0].failure_type, cause_of(*_words(of_one[0])).words, of_one),
            *(_counted(of_one, named), notes.get(key, []), now, since[of_one[0].kind]),
        )
        for key, of_one in grouped.items()
    ]
    found.sort(key=lambda family: (not family.is_rising, -family.count, -family.last_at.timestamp()))
    return Families(found, min(len(runs), MOST_RUNS), len(builds), is_cut=len(runs) > MOST_RUNS)


def _failed_runs(user: User, wanted: Wanted) -> list[Failure]:
    columns = ("pk", "failure_type", "said", "finished_at", "configuration_id", "workspace_id")
    found: Any = listing.runs(user, _that_failed(wanted), Piece(MOST_RUNS + 1)).order_by("-pk")
    rows = found.annotate(said=Left("error_message", MOST_READ)).values_list(*columns)[: MOST_RUNS + 1]
    return [Failure(RUN.kind, *row) for row in rows]


def _that_failed(wanted: Wanted) -> Wanted:
    return Wanted(wanted.workspace_id, wanted.configuration_id, outcomes=FAILED)


def _failed_builds(user: User) -> list[Failure]:
    columns = ("pk", "failure_type", "said", "finished_at", "configuration_id", "configuration__workspace_id")
    # There is no index of those that failed: not all of them are looked through.
    last = Build.objects.order_by("-pk").values_list("pk", flat=True)[LAST_BUILDS : LAST_BUILDS + 1].first()
    found: Any = Build.objects.for_user(user).filter(status="failed", pk__gt=last or 0).order_by("-pk")
    rows = found.annotate(said=Left("error_message", MOST_READ)).values_list(*columns)[:MOST_BUILDS]
    return [Failure(BUILD.kind, *row) for row in rows]


def _grouped(failures: Iterable[Failure]) -> dict[str, list[Failure]]:
    grouped: dict[str, list[Failure]] = {}
    for failure in failures:
        grouped.setdefault(cause_of(*_words(failure)).key, []).append(failure)
    return grouped


def _words(failure: Failure) -> tuple[str, str, str]:
    return failure.kind, failure.failure_type, failure.message


def _ids(failures: Iterable[Failure]) -> set[int]:
    return {failure.configuration_id for failure in failures}


def _configurations(user: User, ids: set[int]) -> Mapping[int, str]:
    return dict(Configuration.objects.for_user(user).filter(pk__in=ids).values_list("pk", "name"))


def _counted(failures: Iterable[Failure], named: Mapping[int, str]) -> list[tuple[str, int, int]]:
    counts = Counter(failure.configuration_id for failure in failures)
    return [(named.get(id, str(id)), id, number) for id, number in counts.most_common()]


def _notes(user: User, keys: Iterable[str]) -> dict[str, list[FailureNote]]:
    found: dict[str, list[FailureNote]] = {}
    notes = FailureNote.objects.for_user(user).filter(cause__in=list(keys)).select_related("workspace")
    for note in notes.order_by("workspace__name"):
        found.setdefault(note.cause, []).append(note)
    return found


def _since(failures: Sequence[Failure]) -> datetime:
    return min((failure.at for failure in failures), default=clock.now())
