"""Retention policies for the histories of runs and job runs, for workers, and for environments.

The history of a run or job run is pruned after a time that depends on how it ended; its row stays. Workers that are
long gone are deleted with their history, and environments are deleted when they have not been used for long.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from django.conf import settings
from django.core.files.storage import default_storage
from django.db.models import Count, Min, Q, QuerySet

from builds import environments
from runs import lifecycle
from runs.models import Run
from schedules import job_runs
from schedules.models import JobRun
from work import boots, failpoints
from work.models import Worker
from work.pruning import Batch, Due, Policy, days_before_now, due_of, in_batches, in_words

# Retention in days, by status.
Days = Mapping[str, int]

log = structlog.get_logger(__name__)


def ended_before(days: Days) -> Q:
    """Return the condition for rows that ended with one of these statuses longer ago than its number of days."""
    before = (Q(status=status, finished_at__lt=days_before_now(number)) for status, number in days.items())
    return Q(*before, _connector=Q.OR)


def _purge_runs(actor: str) -> Iterator[Batch]:
    def prune(ids: list[int]) -> Mapping[str, int]:
        result = lifecycle.prune(ids, ended_before(settings.ADE_KEEP_RUNS), actor=actor)
        failpoints.hit("retention.runs.pruned")
        for file in result.files:
            try:
                default_storage.delete(file)
            except Exception as error:
                # The storage may be down. The sweeper removes the file later.
                log.warning("retention.files_left", file=file, error=repr(error))
        return {"events": result.events, "artifacts": len(result.files)}

    return in_batches(_expired(Run, settings.ADE_KEEP_RUNS), prune, weight="last_sequence")


def _purge_job_runs(actor: str) -> Iterator[Batch]:
    def prune(ids: list[int]) -> Mapping[str, int]:
        return {"events": job_runs.prune(ids, ended_before(settings.ADE_KEEP_JOB_RUNS), actor=actor)}

    return in_batches(_expired(JobRun, settings.ADE_KEEP_JOB_RUNS), prune, weight="last_sequence")


def _due(model: type[Run] | type[JobRun], days: Days) -> Due:
    return Due(**_expired(model, days).aggregate(rows=Count("pk"), oldest=Min("finished_at")))


def _expired(model: "type[Run] | type[JobRun]", days: Days) -> "QuerySet[Any]":
    rows = model._base_manager.filter(ended_before(days), pruned_at__isnull=True)
    return rows if days else rows.none()


def _in_words(days: Days) -> str:
    return ", ".join(f"{status} {number} days" for status, number in days.items()) or "off"


def _purge_workers(_actor: str) -> Iterator[Batch]:
    def forget(ids: list[int]) -> Mapping[str, int]:
        return boots.forget(_old_workers().filter(pk__in=ids))

    return in_batches(_old_workers(), forget, moment="heartbeat_at", weight="last_sequence")


def _old_workers() -> "QuerySet[Worker]":
    days = settings.ADE_KEEP_WORKERS_DAYS
    return Worker.objects.filter(heartbeat_at__lt=days_before_now(days)) if days else Worker.objects.none()


def _due_environments() -> Due:
    """Count the expired environments of this machine."""
    pruned = _prune_environments(rehearse=True)
    used_at = [datetime.fromtimestamp(each.used_at, UTC) for each in pruned.removed]
    return Due(len(used_at), min(used_at, default=None), len(pruned.in_use))


def _purge_environments(_actor: str) -> Iterator[Batch]:
    swept = environments.sweep()
    yield Batch({"environments": swept + len(_prune_environments().removed)})


def _prune_environments(*, rehearse: bool = False) -> environments.Pruned:
    return environments.prune(
        unused_seconds=settings.ADE_ENVIRONMENT_UNUSED_SECONDS,
        most_bytes=settings.ADE_ENVIRONMENTS_BYTES,
        rehearse=rehearse,
    )


RUNS = Policy(
    "run history",
    keeps=lambda: _in_words(settings.ADE_KEEP_RUNS),
    due=lambda: _due(Run, settings.ADE_KEEP_RUNS),
    purge=_purge_runs,
)
JOB_RUNS = Policy(
    "job run history",
    keeps=lambda: _in_words(settings.ADE_KEEP_JOB_RUNS),
    due=lambda: _due(JobRun, settings.ADE_KEEP_JOB_RUNS),
    purge=_purge_job_runs,
)
WORKERS = Policy(
    "workers",
    keeps=lambda: in_words(settings.ADE_KEEP_WORKERS_DAYS),
    due=lambda: due_of(_old_workers(), Worker.objects.none(), "heartbeat_at"),
    purge=_purge_workers,
)
ENVIRONMENTS = Policy(
    "environments",
    keeps=lambda: in_words(max(1, settings.ADE_ENVIRONMENT_UNUSED_SECONDS // (24 * 3600))),
    due=_due_environments,
    purge=_purge_environments,
)
