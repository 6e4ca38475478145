"""Details for the page of a build: the runs that wait for the build, the time that it saved, and the changes since the
previous build.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builds.models import Build
from console import formatting
from console.snapshots import Difference, difference
from runs.models import BACKWARDS, OUTCOME, Run
from work import clock
from work.models import Event
from workspaces.models import User

MOST_WAITING, MOST_NAMED = 1000, 20
MOST_SERVED = 10_000
USED_IT = (Run.Status.SUCCEEDED, Run.Status.FAILED, "timed_out", Run.Status.RUNNING)
# Events that record a failed or lost attempt. The build may have been tried again afterwards.
FAILURES = frozenset({"BUILD_FAILED", "BUILD_RELEASED"})


@dataclass(frozen=True)
class Waiting:
    # `runs` are the oldest waiting runs; `number` counts all of them.
    runs: Sequence[Run]
    number: int
    # Whether there are more runs than were counted.
    is_over: bool


@dataclass(frozen=True)
class Served:
    runs: int
    # Whether there are more runs than were counted.
    is_over: bool
    # The time that building the environment separately for each run would have taken.
    saved_seconds: float

    def __str__(self) -> str:
        over = "over " if self.is_over else ""
        return f"1 build served {over}{formatting.number(self.runs, 'run')}"


@dataclass(frozen=True)
class Changes:
    since: Build
    difference: Difference


def in_words(build: Build) -> str:
    """Return the rest of a sentence that begins with the build's status."""
    if build.status == Build.Status.QUEUED:
        return f"waiting for {formatting.since(build.queued_at)}."
    reason = formatting.plain(build.failure_type) if build.failure_type != "BUILD_FAILED" else ""
    return formatting.of_work(build, reason, is_running=build.status == Build.Status.BUILDING)


def seconds_waited(build: Build) -> float:
    return ((build.started_at or build.finished_at or clock.now()) - build.queued_at).total_seconds()


def waiting_for(build: Build, user: User) -> Waiting:
    """Return the queued runs that wait for the build, oldest first; none if the build has ended."""
    if build.status in build.TERMINAL:
        return Waiting((), 0, is_over=False)
    queued = _runs_of(build, Run.Status.QUEUED).for_user(user).order_by("-backwards")
    ids = list(queued.values_list("pk", flat=True)[: MOST_WAITING + 1])
    first = Run.objects.filter(pk__in=ids[:MOST_NAMED]).select_related("input_document").defer("input_document__text")
    return Waiting(list(first.order_by("pk")), min(len(ids), MOST_WAITING), len(ids) > MOST_WAITING)


def served_by(build: Build) -> Served | None:
    """Count the runs that used a ready build. Runs that failed because the build was not ready don't count."""
    if build.status != Build.Status.READY:
        return None
    failures = list(_runs_of(build, *USED_IT).order_by().values_list("failure_type", flat=True)[: MOST_SERVED + 1])
    counted = failures[:MOST_SERVED]
    runs = len(counted) - counted.count(Run.Failure.BUILD_FAILED)
    return Served(runs, len(failures) > MOST_SERVED, max(0, runs - 1) * formatting.seconds_of(build))


def changes_of(build: Build) -> Changes | None:
    """Return the changes since the previous ready build of the same configuration, or None if there was none."""
    older = Build.objects.filter(configuration_id=build.configuration_id, status=Build.Status.READY, pk__lt=build.pk)
    before = older.defer("lock").order_by("-pk").first()
    return Changes(before, difference(before.snapshot, build.snapshot)) if before else None


def earlier_failures(build: Build, events: Sequence[Event]) -> list[Event]:
    """Return earlier failures of the build, latest first. `events` must also be sorted latest first."""
    failures = [event for event in events if event.kind in FAILURES]
    # The page already shows the latest failure at the top.
    return failures[1:] if build.status == Build.Status.FAILED else failures


def _runs_of(build: Build, *outcomes: str) -> Any:
    """Return runs of the build with these outcomes. The query uses the same expressions as the index on build and
    outcome, so that the planner uses this index.
    """
    return Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(build=build.pk, now__in=outcomes)
