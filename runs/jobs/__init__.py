"""Scheduled jobs are declared in code: `settings.JOBS` names them by dotted path, as apps above this one have them."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from runs.jobs import cron
from work.claims import Claim, Interrupted

# A slot that has run for this many times as long as it may is given up, also while its worker lives.
STALE_FACTOR = 2
OVER_TIME = "over_time"


class JobFailed(Exception):
    """Ends a slot as failed. The message says what was expected, what was found, and what to do."""


class UnknownJob(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(f"expected a job of {', '.join(job.name for job in all_jobs())}, found {name!r}")


@dataclass(frozen=True)
class Job:
    name: str
    # In a sentence, for people.
    about: str
    # Minute, hour, day, month, weekday; by the clocks of this zone, which may have summer time.
    cron: str
    time_zone: str
    # Does it, and answers how many rows it has processed. Safe to be run again: a slot may have died half way.
    function: "Callable[[Turn], int]"
    max_runtime: timedelta
    # Of several slots that are due at once: only the latest, or all, one after the other.
    coalesce: bool
    # A slot that could not begin for as long is dropped.
    misfire_grace: timedelta

    def __post_init__(self) -> None:
        # At once, where it is declared: a schedule that cannot be read would hold up all others.
        cron.check(self.cron, self.time_zone)

    @property
    def stale_after(self) -> timedelta:
        return STALE_FACTOR * self.max_runtime


class Turn:
    """One slot while it is being run, as its job sees it."""

    def __init__(self, job: Job, scheduled_for: datetime, claim: Claim) -> None:
        self.job, self.scheduled_for, self.claim = job, scheduled_for, claim
        self.until = time.monotonic() + job.max_runtime.total_seconds()

    @property
    def owner(self) -> str:
        """The actor of whatever it writes."""
        return self.claim.holder.owner

    def why_stop(self) -> str | None:
        """The reason for which it has to end now; None while it may go on. For whoever supervises a child."""
        return self.claim.why_stop() or (OVER_TIME if time.monotonic() >= self.until else None)

    def go_on(self) -> None:
        """Asked again and again: raises Interrupted, or JobFailed when the slot has had its time."""
        self.ended(self.why_stop())

    def ended(self, reason: str | None) -> None:
        """What `why_stop` has said, as the end of the slot."""
        if reason == OVER_TIME:
            seconds = self.job.max_runtime.total_seconds()
            raise JobFailed(
                f"expected {self.job.name} to end within {seconds:.0f} s, found it at work;"
                " what it has done stays, and the next slot goes on"
            )
        if reason:
            raise Interrupted(reason)


def all_jobs() -> Iterable[Job]:
    return _load(tuple(settings.JOBS))


def is_declared(name: str) -> bool:
    return any(job.name == name for job in all_jobs())


def job_named(name: str) -> Job:
    """Raises UnknownJob."""
    job = next((job for job in all_jobs() if job.name == name), None)
    if job is None:
        raise UnknownJob(name)
    return job


@cache
def _load(paths: tuple[str, ...]) -> tuple[Job, ...]:
    return tuple(import_string(path) for path in paths)
