"""The current state as one user may see it: everything that the dashboard shows, queried once.

Members see what all workspaces share, but only the runs and builds of their own workspaces. Every query is bounded, and
a number above its bound is shown as "over" the bound.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from statistics import median

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Permission
from django.db.models import Count, Exists, Min, Q

from builds.models import Build
from console import latest, slots, worker_status
from console.latest import EndedRuns, FailedRuns, SubmittedRuns
from console.slots import JobSlots
from console.worker_status import Workers, WorkerStatus
from feeds.models import FeedSource
from runs import queue
from runs.lifecycle import RUN_STATES
from runs.models import Queue, Run
from work import clock
from workspaces.models import Workspace

MOST_QUEUED, MOST_RUNNING, MOST_BUILDS, MOST_FEEDS = 10_000, 200, 200, 100
# A run that waits longer than this needs attention.
LONG_WAIT = timedelta(minutes=10)
# A feed that is silent for longer than this needs attention, as in `manage.py doctor`. Its server may be away for a
# weekend.
SILENCE = timedelta(days=3)
SOON = timedelta(minutes=5)


@dataclass(frozen=True)
class Person:
    user: AbstractUser
    # The IDs of the user's workspaces; None means all workspaces.
    workspace_ids: frozenset[int] | None
    may_change_queue: bool

    @property
    def is_stranger(self) -> bool:
        return self.workspace_ids == frozenset()

    def sees(self, run: Run) -> bool:
        return self.workspace_ids is None or run.workspace_id in self.workspace_ids


@dataclass(frozen=True)
class Waiting:
    """How many runs of all workspaces are queued, counted up to a bound."""

    number: int
    since: datetime | None
    # How many runs have waited for long, and the ID of the first such run that the user may see.
    long: int
    oldest: int | None

    @property
    def count(self) -> str:
        return f"over {MOST_QUEUED:,}" if self.number > MOST_QUEUED else f"{self.number:,}"


@dataclass(frozen=True)
class Throughput:
    # Runs that ended in the last hour, and in the time SOON. With `is_…_cut`, the number counts only the loaded runs.
    hour: int
    is_hour_cut: bool
    soon: int
    is_soon_cut: bool
    wait_seconds: float | None
    work_seconds: float | None


@dataclass(frozen=True)
class Situation:
    now: datetime
    person: Person
    queue: Queue | None
    waiting: Waiting
    # The running runs of all workspaces, longest-running first.
    running: Sequence[Run]
    workers: Workers
    submitted: SubmittedRuns
    ended: EndedRuns
    failed: FailedRuns
    # Newest first.
    builds: Sequence[Build]
    job_slots: Sequence[JobSlots]
    silent_feeds: Sequence[FeedSource]
    free_bytes: int

    @property
    def is_paused(self) -> bool:
        return bool(self.queue and self.queue.paused_at)

    @property
    def concurrency(self) -> int:
        return self.workers.concurrency(RUN_STATES.kind)

    @property
    def limit(self) -> int | None:
        return settings.ADE_QUEUE_SIZE

    @property
    def free(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.waiting.number - len(self.running))

    @property
    def running_count(self) -> str:
        return f"over {MOST_RUNNING}" if len(self.running) > MOST_RUNNING else str(len(self.running))

    @property
    def throughput(self) -> Throughput:
        hour, soon = self.now - latest.HOUR, self.now - SOON
        ended = self.ended.after(hour)
        waits = [run.started_at - run.created_at for run in ended if run.started_at]
        lengths = [run.finished_at - run.started_at for run in ended if run.started_at]
        return Throughput(
            hour=len(ended),
            is_hour_cut=self.ended.is_cut_after(hour),
            soon=len(self.ended.after(soon)),
            is_soon_cut=self.ended.is_cut_after(soon),
            wait_seconds=median(wait.total_seconds() for wait in waits) if waits else None,
            work_seconds=median(length.total_seconds() for length in lengths) if lengths else None,
        )

    @cached_property
    def worker_states(self) -> Sequence[WorkerStatus]:
        building = [build for build in self.builds if build.status == Build.CLAIMED]
        job_runs = [job_run for job_slots in self.job_slots for job_run in job_slots.running]
        return worker_status.status_of(self.workers, self.running, building, job_runs, self.person.sees)


def person_of(user: AbstractUser) -> Person:
    """Load the user's workspaces and permission in one query; `has_perm` would need two more."""
    if user.is_superuser and user.is_active:
        return Person(user, None, may_change_queue=True)
    permissions = Permission.objects.filter(Q(user=user.pk) | Q(group__user=user.pk))
    permission = permissions.filter(content_type__app_label="runs", codename="change_queue")
    rows = list(Workspace.objects.for_user(user).annotate(may=Exists(permission)).values_list("pk", "may"))
    return Person(user, frozenset(id for id, _ in rows), may_change_queue=any(may for _, may in rows))


def situation_of(person: Person) -> Situation:
    now = clock.now()
    ended, failed = latest.of_the_day(person.user, person.workspace_ids)
    columns = ("status", "configuration__name", "lease_owner", "started_at", "finished_at", "queued_at")
    builds = Build.objects.for_user(person.user).select_related("configuration")
    return Situation(
        now=now,
        person=person,
        queue=queue.current_row(),
        waiting=_waiting(now, person),
        running=_running(now),
        workers=worker_status.now(),
        submitted=latest.submitted(person.user, person.workspace_ids),
        ended=ended,
        failed=failed,
        builds=list(builds.only(*columns, "failure_type", "error_message").order_by("-pk")[:MOST_BUILDS]),
        job_slots=slots.of_all(),
        silent_feeds=list(FeedSource.objects.silent_since(now - SILENCE).order_by("pk")[: MOST_FEEDS + 1]),
        free_bytes=shutil.disk_usage(settings.VAR_DIR).free,
    )


def _waiting(now: datetime, person: Person) -> Waiting:
    queued = Run.objects.filter(status=Run.Status.QUEUED).order_by()[: MOST_QUEUED + 1]
    long = Q(created_at__lt=now - LONG_WAIT)
    visible = long if person.workspace_ids is None else long & Q(workspace_id__in=sorted(person.workspace_ids))
    counts = {"long": Count("pk", filter=long), "oldest": Min("pk", filter=visible)}
    return Waiting(**queued.aggregate(number=Count("pk"), since=Min("created_at"), **counts))


def _running(now: datetime) -> Sequence[Run]:
    running = Run.objects.filter(status=Run.Status.RUNNING).select_related("configuration", "input_document")
    columns = ("workspace_id", "lease_owner", "started_at", "configuration__name", "input_document__name")
    rows = running.only(*columns).order_by()[: MOST_RUNNING + 1]
    return sorted(rows, key=lambda run: (run.started_at or now, run.pk))
