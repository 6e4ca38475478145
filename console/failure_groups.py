"""Groups failures into families by cause: see `console/causes.py`. Only the latest failures are read, so that a page
costs the same however many runs there are. On the page, "all" means all failures that were read.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models.functions import Left

from builds.lifecycle import BUILD_STATES
from builds.models import Build, Configuration
from console.causes import MOST_READ, Cause, cause_of
from console.latest import FAILED
from console.models import FailureNote
from runs import listing
from runs.lifecycle import RUN_STATES
from runs.listing import PageRequest, RunFilter
from runs.models import Run
from work import clock
from workspaces.models import User

# The number of failed runs and of failed builds that are read, and how many of the latest builds are searched for
# failed ones.
MOST_RUNS, MOST_BUILDS, LAST_BUILDS = 1000, 200, 2000
HOUR = timedelta(hours=1)
# A family is rising if it had at least LEAST_RISING failures in the last hour (fewer may be chance), which is also at
# least TIMES its earlier hourly rate.
LEAST_RISING, TIMES = 3, 2.0
MOST_EXAMPLES = 3


class Failure(NamedTuple):
    """Those columns of a failed run or build that a family needs."""

    kind: str
    id: int
    failure_type: str
    message: str
    at: datetime
    configuration_id: int
    workspace_id: int

    @property
    def cause(self) -> Cause:
        return cause_of(self.kind, self.failure_type, self.message)


@dataclass(frozen=True)
class Family:
    key: str
    kind: str
    failure_type: str
    # The normalised message, which all failures of the family share.
    cause: str
    # Newest first.
    failures: Sequence[Failure]
    # Name, ID and number of failures of each configuration; the one with most failures first.
    configurations: Sequence[tuple[str, int, int]]
    notes: Sequence[FailureNote]
    now: datetime
    # The start of the searched period. The earlier rate covers the time from here until one hour ago.
    since: datetime

    @property
    def count(self) -> int:
        return len(self.failures)

    @property
    def is_of_runs(self) -> bool:
        return self.kind == RUN_STATES.kind

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
        """Return the newest failures with different messages."""
        return list({failure.message: failure for failure in reversed(self.failures)}.values())[::-1][:MOST_EXAMPLES]

    @property
    def workspace_ids(self) -> frozenset[int]:
        return frozenset(failure.workspace_id for failure in self.failures)

    @cached_property
    def in_the_last_hour(self) -> int:
        return sum(failure.at > self.now - HOUR for failure in self.failures)

    @property
    def hourly_before(self) -> float:
        """Return the average number of failures per hour before the last hour."""
        hours = max(1.0, (self.now - HOUR - self.since) / HOUR)
        return (self.count - self.in_the_last_hour) / hours

    @property
    def is_rising(self) -> bool:
        return self.in_the_last_hour >= max(LEAST_RISING, TIMES * self.hourly_before)


@dataclass(frozen=True)
class Families:
    """All families: first the rising ones, then the others by size."""

    all: Sequence[Family]
    runs: int
    builds: int
    # Whether more runs have failed than were read.
    is_cut: bool

    @property
    def rising(self) -> Sequence[Family]:
        return [family for family in self.all if family.is_rising]

    def find(self, key: str) -> Family | None:
        return next((family for family in self.all if family.key == key), None)


def families_of(user: User, filters: RunFilter | None = None) -> Families:
    """Return the families that this user may see. With filters, which builds don't have, they contain only runs."""
    filters = filters or RunFilter()
    runs = _failed_runs(user, filters)
    builds = _failed_builds(user) if filters == RunFilter() else []
    by_key: dict[str, list[Failure]] = {}
    for failure in (*runs[:MOST_RUNS], *builds):
        by_key.setdefault(failure.cause.key, []).append(failure)
    ids = {failure.configuration_id for failures in by_key.values() for failure in failures}
    names = dict(Configuration.objects.for_user(user).filter(pk__in=ids).values_list("pk", "name"))
    notes: dict[str, list[FailureNote]] = {}
    rows = FailureNote.objects.for_user(user).filter(cause__in=list(by_key)).select_related("workspace")
    for note in rows.order_by("workspace__name"):
        notes.setdefault(note.cause, []).append(note)
    now, families = clock.now(), []
    since = {RUN_STATES.kind: _first_at(runs[:MOST_RUNS], now), BUILD_STATES.kind: _first_at(builds, now)}
    for key, failures in by_key.items():
        counts = Counter(failure.configuration_id for failure in failures)
        family = Family(
            key=key,
            kind=failures[0].kind,
            failure_type=failures[0].failure_type,
            cause=failures[0].cause.words,
            failures=failures,
            configurations=[(names.get(id, str(id)), id, number) for id, number in counts.most_common()],
            notes=notes.get(key, []),
            now=now,
            since=since[failures[0].kind],
        )
        families.append(family)
    families.sort(key=lambda family: (not family.is_rising, -family.count, -family.last_at.timestamp()))
    return Families(families, min(len(runs), MOST_RUNS), len(builds), is_cut=len(runs) > MOST_RUNS)


def _failed_runs(user: User, filters: RunFilter) -> list[Failure]:
    columns = ("pk", "failure_type", "text", "finished_at", "configuration_id", "workspace_id")
    failed = RunFilter(filters.workspace_id, filters.configuration_id, outcomes=FAILED)
    runs: Any = listing.runs(user, failed, PageRequest(MOST_RUNS + 1)).order_by("-pk")
    rows = runs.annotate(text=Left("error_message", MOST_READ)).values_list(*columns)[: MOST_RUNS + 1]
    return [Failure(RUN_STATES.kind, *row) for row in rows]


def _failed_builds(user: User) -> list[Failure]:
    columns = ("pk", "failure_type", "text", "finished_at", "configuration_id", "configuration__workspace_id")
    # Search only the latest builds, because failed builds have no index.
    last = Build.objects.order_by("-pk").values_list("pk", flat=True)[LAST_BUILDS : LAST_BUILDS + 1].first()
    builds: Any = Build.objects.for_user(user).filter(status=Build.Status.FAILED, pk__gt=last or 0).order_by("-pk")
    rows = builds.annotate(text=Left("error_message", MOST_READ)).values_list(*columns)[:MOST_BUILDS]
    return [Failure(BUILD_STATES.kind, *row) for row in rows]


def _first_at(failures: Sequence[Failure], now: datetime) -> datetime:
    return min((failure.at for failure in failures), default=now)
