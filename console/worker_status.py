"""Shows which workers are alive and what they are doing, without the IDs of rows of other workspaces."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.urls import reverse

from builds.lifecycle import BUILD_STATES
from builds.models import Build
from console.subjects import url_of_job
from runs.lifecycle import RUN_STATES
from runs.models import Run
from schedules.job_runs import JOB_RUN_STATES
from schedules.models import JobRun
from work import clock
from work.models import Worker
from work.work_types import all_work_types

MOST = 100
# Workers that have been silent for longer than this are not shown.
LATELY = timedelta(days=1)


@dataclass(frozen=True)
class CurrentWork:
    name: str
    url: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class WorkerStatus:
    worker: Worker
    state: str
    is_draining: bool
    # The number of worker threads.
    concurrency: int
    works: Sequence[CurrentWork]


@dataclass(frozen=True)
class Workers:
    """The workers, sorted by heartbeat, most recent first."""

    all: Sequence[Worker]

    @cached_property
    def alive(self) -> Sequence[Worker]:
        return [worker for worker in self.all if worker.state == "alive"]

    @cached_property
    def draining(self) -> Sequence[Worker]:
        return [worker for worker in self.alive if worker.is_draining]

    def concurrency(self, kind: str) -> int:
        """Return the number of threads for this kind, counting only workers that accept work."""
        return sum(worker.lanes.get(kind, 0) for worker in self.alive if not worker.is_draining)

    @property
    def gone_since(self) -> datetime | None:
        """Return when a worker was last alive."""
        last = self.all[0] if self.all else None
        return (last.stopped_at or last.heartbeat_at) if last else None

    @property
    def recent(self) -> Sequence[Worker]:
        since = clock.now() - LATELY
        gone = [each for each in self.all if each.state == "silent" and each.heartbeat_at > since]
        names = {(each.name, each.host) for each in self.alive}
        # Leave out silent workers that were restarted: a worker with the same name and host is alive.
        gone = [each for each in gone if (each.name, each.host) not in names]
        return sorted(self.alive, key=lambda each: (each.name, each.pk)) + gone


def now() -> Workers:
    return Workers(list(Worker.objects.order_by("-heartbeat_at")[:MOST]))


def status_of(
    workers: Workers,
    runs: Iterable[Run],
    builds: Iterable[Build],
    job_runs: Iterable[JobRun],
    is_mine: Callable[[Any], bool],
) -> Sequence[WorkerStatus]:
    """Combine workers with their work. `runs`, `builds` and `job_runs` must contain all rows in progress. Rows that the
    user may not see are shown without details.
    """
    by_owner: dict[str | None, list[CurrentWork]] = {}
    for run in runs:
        work = CurrentWork("a run of another workspace")
        if is_mine(run):
            name = f"run {run.pk} of {run.configuration.name} for {run.input_document.name}"
            work = CurrentWork(name, reverse("console:run", args=[run.pk]), run.started_at)
        by_owner.setdefault(run.lease_owner, []).append(work)
    for build in builds:
        name = f"build {build.pk} of {build.configuration.name}"
        work = CurrentWork(name, reverse("console:build", args=[build.pk]), build.started_at)
        by_owner.setdefault(build.lease_owner, []).append(work)
    for job_run in job_runs:
        work = CurrentWork(f"a slot of {job_run.job_name}", url_of_job(job_run.job_name), job_run.started_at)
        by_owner.setdefault(job_run.lease_owner, []).append(work)
    return [
        WorkerStatus(
            worker=worker,
            state=worker.state,
            is_draining=worker.is_draining,
            concurrency=sum(worker.lanes.values()),
            works=[*by_owner.get(worker.owner, []), *_other_work(worker)],
        )
        for worker in workers.recent
    ]


def _other_work(worker: Worker) -> Iterator[CurrentWork]:
    """Yield the other work, of which only the kind is shown. The worker stores it in the form "stage 12"."""
    counts = Counter(name.rpartition(" ")[0] for name in worker.doing)
    models: dict[str, Any] = {kind.name: kind.states.model for kind in all_work_types()}
    for kind, number in sorted(counts.items()):
        if kind in models and kind not in (RUN_STATES.kind, BUILD_STATES.kind, JOB_RUN_STATES.kind):
            names = models[kind]._meta
            yield CurrentWork(f"{number} {names.verbose_name if number == 1 else names.verbose_name_plural}")
