"""Collects what has changed since a moment, as far as the user may see it. Counts are limited, and the important
changes are listed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db.models import Count, Max

from builds.models import Build
from console import latest
from console.latest import Brief, EndedRuns
from console.subjects import url_of_job
from console.visits import Absence
from documents.models import Document
from feeds.models import FeedSource
from runs.models import Queue
from runs.queue import QUEUE_STATES
from schedules.jobs import all_jobs
from schedules.models import JobRun
from work.models import Event, Worker

MOST_SHOWN = 10
MOST_COUNTED = 1000
MOST_BUILDS, MOST_WORKERS = 200, 100
# While all workers are away, for example over a weekend, nothing gives up a job run whose worker is gone. So a job run
# may end this much later than its job allows.
OUTAGE = timedelta(days=3)


@dataclass(frozen=True)
class FailedJob:
    job: str
    # How many slots failed, and the time of the last one.
    number: int
    last: datetime

    @property
    def url(self) -> str:
        return url_of_job(self.job)


@dataclass(frozen=True)
class Changes:
    absence: Absence
    ended: EndedRuns
    builds: Sequence[Build]
    # The documents that were added since then, counted by status.
    documents: Mapping[str, int]
    failed_jobs: Sequence[FailedJob]
    feeds: Sequence[FeedSource]
    queue: Sequence[Event]
    workers: Sequence[Worker]

    @property
    def outcomes(self) -> Mapping[str, int]:
        return count(run.outcome for run in self.ended.runs)

    @property
    def first_failures(self) -> Sequence[Brief]:
        return self.ended.failures[:MOST_SHOWN]

    @property
    def build_statuses(self) -> Mapping[str, int]:
        return count(build.status for build in self.builds)

    @property
    def failed_builds(self) -> Sequence[Build]:
        return [build for build in self.builds if build.status == Build.Status.FAILED]

    @property
    def document_count(self) -> int:
        return sum(self.documents.values())

    @property
    def are_documents_cut(self) -> bool:
        return self.document_count > MOST_COUNTED

    @property
    def is_nothing(self) -> bool:
        parts = (self.ended.runs, self.builds, self.documents, self.failed_jobs, self.feeds, self.queue, self.workers)
        return not any(parts)


def count(words: Iterable[str]) -> Mapping[str, int]:
    # A plain dict: in a template, `.items` of a Counter would return the count of "items".
    return dict(Counter(words).most_common())


def changes_since(person: AbstractUser, absence: Absence) -> Changes:
    since = absence.since
    columns = ("status", "configuration__name", "finished_at", "failure_type", "error_message")
    builds = Build.objects.for_user(person).select_related("configuration").only(*columns).order_by("-pk")
    documents = Document.objects.for_user(person).filter(created_at__gte=since).order_by()
    queue = Event.objects.about(QUEUE_STATES.kind, Queue.ONLY).order_by("-sequence")[:MOST_SHOWN]
    workers = Worker.objects.order_by("-heartbeat_at")[:MOST_WORKERS]
    new = [each for each in workers if each.state == "alive" and each.started_at >= since]
    gone = [each for each in workers if each.state != "alive" and (each.stopped_at or each.heartbeat_at) >= since]
    return Changes(
        absence=absence,
        ended=latest.ended(person, since),
        builds=[build for build in builds[:MOST_BUILDS] if build.finished_at and build.finished_at >= since],
        documents=count(documents.values_list("status", flat=True)[: MOST_COUNTED + 1]),
        failed_jobs=_failed_jobs(since),
        # Only feeds that began to fail after `since`.
        feeds=list(FeedSource.objects.failing_from(since).order_by("pk")[:MOST_SHOWN]),
        queue=[event for event in queue if event.at >= since and event.kind in ("QUEUE_PAUSED", "QUEUE_RESUMED")],
        workers=[*new, *gone][:MOST_SHOWN],
    )


def _failed_jobs(since: datetime) -> Sequence[FailedJob]:
    failed = [JobRun.Status.FAILED, JobRun.Status.SKIPPED_TIMEOUT]
    # Filter by the start too, because it has an index, and the end has none.
    started = since - OUTAGE - max((job.stale_after for job in all_jobs()), default=timedelta())
    ended = JobRun.objects.filter(started_at__gte=started, finished_at__gte=since, status__in=failed)
    by_job = ended.order_by().values("job_name")
    rows = by_job.annotate(number=Count("pk"), last=Max("scheduled_for")).order_by("job_name")
    return [FailedJob(*row) for row in rows.values_list("job_name", "number", "last")]
