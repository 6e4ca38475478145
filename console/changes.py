"""Changes since a moment, restricted to what the user may see. Numbers are bounded, and important cases are
listed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db.models import Count, Max

from builds.models import Build
from console import latest
from console.latest import Brief, Ended
from console.slots import page_of_job
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
# A slot that has begun is not given up while all workers are away, so it may end this much later: a weekend.
OUTAGE = timedelta(days=3)


@dataclass(frozen=True)
class Wrong:
    """The slots of one job that failed."""

    job: str
    number: int
    last: datetime

    @property
    def url(self) -> str:
        return page_of_job(self.job)


@dataclass(frozen=True)
class Changes:
    absence: Absence
    ended: Ended
    builds: Sequence[Build]
    # Statuses of the documents that were added since then.
    documents: Mapping[str, int]
    wrong: Sequence[Wrong]
    feeds: Sequence[FeedSource]
    queue: Sequence[Event]
    workers: Sequence[Worker]

    @property
    def outcomes(self) -> Mapping[str, int]:
        return _counted(run.outcome for run in self.ended.runs)

    @property
    def failures(self) -> Sequence[Brief]:
        return self.ended.failures

    @property
    def first_failures(self) -> Sequence[Brief]:
        return self.failures[:MOST_SHOWN]

    @property
    def built(self) -> Mapping[str, int]:
        return _counted(build.status for build in self.builds)

    @property
    def failed_builds(self) -> Sequence[Build]:
        return [build for build in self.builds if build.status == "failed"]

    @property
    def documents_counted(self) -> int:
        return sum(self.documents.values())

    @property
    def are_documents_cut(self) -> bool:
        return self.documents_counted > MOST_COUNTED

    @property
    def is_nothing(self) -> bool:
        told = (self.ended.runs, self.builds, self.documents, self.wrong, self.feeds, self.queue, self.workers)
        return not any(told)


def since(person: AbstractUser, absence: Absence) -> Changes:
    return Changes(
        absence=absence,
        ended=latest.ended(person, absence.since),
        builds=_builds(person, absence.since),
        documents=_documents(person, absence.since),
        wrong=_wrong(absence.since),
        # Feeds that fail now but did not fail then.
        feeds=list(FeedSource.objects.failing_from(absence.since).order_by("pk")[:MOST_SHOWN]),
        queue=_queue(absence.since),
        workers=_workers(absence.since),
    )


def _builds(person: AbstractUser, since: datetime) -> Sequence[Build]:
    """Return the builds that have ended, among the newest ones."""
    shown = ("status", "configuration__name", "finished_at", "failure_type", "error_message")
    builds = Build.objects.for_user(person).select_related("configuration").only(*shown).order_by("-pk")
    return [build for build in builds[:MOST_BUILDS] if build.finished_at and build.finished_at >= since]


def _documents(person: AbstractUser, since: datetime) -> Mapping[str, int]:
    added = Document.objects.for_user(person).filter(created_at__gte=since).order_by()
    return _counted(added.values_list("status", flat=True)[: MOST_COUNTED + 1])


def _wrong(since: datetime) -> Sequence[Wrong]:
    bad = [JobRun.Status.FAILED, JobRun.Status.SKIPPED_TIMEOUT]
    # There is an index on the start, but none on the end.
    begun = since - OUTAGE - max((job.stale_after for job in all_jobs()), default=timedelta())
    ended = JobRun.objects.filter(started_at__gte=begun, finished_at__gte=since, status__in=bad)
    of_jobs = ended.order_by().values("job_name")
    found = of_jobs.annotate(number=Count("pk"), last=Max("scheduled_for")).order_by("job_name")
    return [Wrong(*row) for row in found.values_list("job_name", "number", "last")]


def _queue(since: datetime) -> Sequence[Event]:
    """Return the latest pauses and resumes of the queue, latest first."""
    events = Event.objects.about(QUEUE_STATES.kind, Queue.ONLY).order_by("-sequence")[:MOST_SHOWN]
    return [event for event in events if event.at >= since and event.kind in ("QUEUE_PAUSED", "QUEUE_RESUMED")]


def _workers(since: datetime) -> Sequence[Worker]:
    """Return workers that have started, stopped or become silent."""
    known = Worker.objects.order_by("-heartbeat_at")[:MOST_WORKERS]
    gone = [each for each in known if each.state != "alive" and (each.stopped_at or each.heartbeat_at) >= since]
    new = [each for each in known if each.state == "alive" and each.started_at >= since]
    return [*new, *gone][:MOST_SHOWN]


def _counted(words: Iterable[str]) -> Mapping[str, int]:
    # A plain dict: in a template, `.items` of a Counter would return the count of "items".
    return dict(Counter(words).most_common())
