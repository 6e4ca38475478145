"""Which workers are alive and what they do. The IDs of other workspaces' rows are not shown."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.urls import reverse

from builds.models import Build
from console.slots import page_of_job
from runs.lifecycle import RUN_STATES
from runs.models import Run
from schedules.models import JobRun
from work import clock
from work.models import Worker
from work.work_types import all_work_types

MOST = 100
# Workers that have been silent for longer are not shown.
LATELY = timedelta(days=1)


@dataclass(frozen=True)
class Doing:
    said: str
    url: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class Hand:
    worker: Worker
    state: str
    is_draining: bool
    slots: int
    doing: Sequence[Doing]


@dataclass(frozen=True)
class Crew:
    """Workers, the most recent heartbeat first."""

    workers: Sequence[Worker]

    @cached_property
    def alive(self) -> Sequence[Worker]:
        return [worker for worker in self.workers if worker.state == "alive"]

    @cached_property
    def draining(self) -> Sequence[Worker]:
        return [worker for worker in self.alive if worker.is_draining]

    def slots(self, kind: str) -> int:
        """Return the slots of workers that accept work."""
        return sum(worker.lanes.get(kind, 0) for worker in self.alive if not worker.is_draining)

    @property
    def gone_since(self) -> datetime | None:
        """Return when the last worker was alive."""
        last = self.workers[0] if self.workers else None
        return (last.stopped_at or last.heartbeat_at) if last else None

    @property
    def lately(self) -> Sequence[Worker]:
        since = clock.now() - LATELY
        gone = [each for each in self.workers if each.state == "silent" and each.heartbeat_at > since]
        names = {(each.name, each.host) for each in self.alive}
        # A worker that was restarted is not missing.
        gone = [each for each in gone if (each.name, each.host) not in names]
        return sorted(self.alive, key=lambda each: (each.name, each.pk)) + gone


def now() -> Crew:
    return Crew(list(Worker.objects.order_by("-heartbeat_at")[:MOST]))


def at_work(
    crew: Crew, runs: Iterable[Run], builds: Iterable[Build], job_runs: Iterable[JobRun], is_mine: Callable[[Any], bool]
) -> Sequence[Hand]:
    """Combine workers with their work. `runs`, `builds` and `job_runs` must be all that are running; rows that the
    user may not see are shown without details.
    """
    done: dict[str | None, list[Doing]] = {}
    for run in runs:
        done.setdefault(run.lease_owner, []).append(
            _of_run(run) if is_mine(run) else Doing("a run of another workspace")
        )
    for build in builds:
        done.setdefault(build.lease_owner, []).append(_of_build(build))
    for job_run in job_runs:
        done.setdefault(job_run.lease_owner, []).append(_of_job(job_run))
    return [_with_others(_hand(each, done.get(each.owner, []))) for each in crew.lately]


def _hand(worker: Worker, doing: Sequence[Doing]) -> Hand:
    return Hand(worker, worker.state, worker.is_draining, sum(worker.lanes.values()), doing)


def _of_run(run: Run) -> Doing:
    said = f"run {run.pk} of {run.configuration.name} for {run.input_document.name}"
    return Doing(said, reverse("console:run", args=[run.pk]), run.started_at)


def _of_build(build: Build) -> Doing:
    said = f"build {build.pk} of {build.configuration.name}"
    return Doing(said, reverse("console:build", args=[build.pk]), build.started_at)


def _of_job(job_run: JobRun) -> Doing:
    return Doing(f"a slot of {job_run.job_name}", page_of_job(job_run.job_name), job_run.started_at)


def _with_others(hand: Hand) -> Hand:
    """Add the work that is known only by its kind. The worker stores it in the form "stage 12"."""
    told = Counter(said.rpartition(" ")[0] for said in hand.worker.doing)
    for kind in (RUN_STATES.kind, "build", "job_run"):
        told.pop(kind, None)
    names = {kind.name: kind.states.model._meta for kind in all_work_types()}
    others = [Doing(_number(names[kind], n)) for kind, n in sorted(told.items()) if kind in names]
    return replace(hand, doing=[*hand.doing, *others])


def _number(of: Any, number: int) -> str:
    return f"{number} {of.verbose_name if number == 1 else of.verbose_name_plural}"
