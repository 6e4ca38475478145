"""Declarations of scheduled jobs. `settings.JOBS` lists them by dotted path, because the apps that declare them import
this app.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from schedules import cron
from work.claims import Claim, Interrupted

# A job run that takes this many times its maximum runtime is given up, even if its worker is alive.
STALE_FACTOR = 2
OVER_TIME = "over_time"


class JobFailed(Exception):
    """Ends a job run as failed. The message says what happened, what was wrong, and what to do."""


class UnknownJob(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown job {name!r}. Known jobs: {', '.join(job.name for job in all_jobs())}.")


@dataclass(frozen=True)
class Job:
    name: str
    # A sentence that describes the job.
    about: str
    # Minute, hour, day, month and weekday in this time zone, which may have daylight saving time.
    cron: str
    time_zone: str
    # Does the work and returns the number of processed rows. It must be safe to repeat, because a run may die half-way.
    function: "Callable[[JobContext], int]"
    max_runtime: timedelta
    # If several slots are due at once, run only the latest of them (True) or all in sequence (False).
    coalesce: bool
    # A slot that could not start within this time is dropped.
    misfire_grace: timedelta

    def __post_init__(self) -> None:
        # Check this at import, because an unreadable schedule would hold up all others.
        cron.check(self.cron, self.time_zone)

    @property
    def stale_after(self) -> timedelta:
        return STALE_FACTOR * self.max_runtime


class JobContext:
    """One job run, as the job's function sees it."""

    def __init__(self, job: Job, scheduled_for: datetime, claim: Claim) -> None:
        self.job, self.scheduled_for, self.claim = job, scheduled_for, claim
        self.until = time.monotonic() + job.max_runtime.total_seconds()

    @property
    def owner(self) -> str:
        """The actor for everything that the job writes."""
        return self.claim.holder.owner

    def why_stop(self) -> str | None:
        """Return why the job must end, or None while it may go on. For jobs that supervise a child process."""
        return self.claim.why_stop() or (OVER_TIME if time.monotonic() >= self.until else None)

    def go_on(self) -> None:
        """Raise Interrupted if the job must end, or JobFailed if its time is over. Call it often."""
        self.ended(self.why_stop())

    def ended(self, reason: str | None) -> None:
        """Raise the exception for a reason that `why_stop` has returned."""
        if reason == OVER_TIME:
            seconds = self.job.max_runtime.total_seconds()
            raise JobFailed(
                f"{self.job.name} did not finish within {seconds:.0f} s."
                " What it has done is kept, and the next slot continues."
            )
        if reason:
            raise Interrupted(reason)


def all_jobs() -> Iterable[Job]:
    return _load(tuple(settings.JOBS))


def is_declared(name: str) -> bool:
    return any(job.name == name for job in all_jobs())


def job_named(name: str) -> Job:
    """Return the job with this name. Raises UnknownJob."""
    job = next((job for job in all_jobs() if job.name == name), None)
    if job is None:
        raise UnknownJob(name)
    return job


@cache
def _load(paths: tuple[str, ...]) -> tuple[Job, ...]:
    return tuple(import_string(path) for path in paths)
