"""The operations that people perform on scheduled jobs: see `work/operations/previews.py`."""

from collections.abc import Callable

from schedules import history, requests
from schedules.jobs import UnknownJob, job_named
from schedules.models import ScheduledJob
from work.operations.outcomes import Outcome, preview_pause, preview_resume
from work.operations.previews import Operation


def run_now(row: ScheduledJob, *, actor: str) -> Outcome:
    try:
        requests.run_now(job_named(row.name), actor=actor)
    except UnknownJob:
        return Outcome.NOT_FOUND
    return Outcome.DUE


def pause(row: ScheduledJob, *, actor: str, reason: str = "") -> Outcome:
    return Outcome.PAUSED if history.pause(row, actor=actor, reason=reason) else Outcome.WAS_PAUSED


def resume(row: ScheduledJob, *, actor: str) -> Outcome:
    return Outcome.RESUMED if history.resume(row, actor=actor) else Outcome.NOT_PAUSED


def _if_declared(predict: Callable[[ScheduledJob], Outcome]) -> Callable[[ScheduledJob], Outcome]:
    return lambda row: Outcome.NOT_FOUND if row.retired_at else predict(row)


RUN_NOW = Operation("run_now", "Run now", run_now, _if_declared(lambda row: Outcome.DUE))
PAUSE = Operation("pause", "Pause", pause, _if_declared(preview_pause), takes_reason=True)
RESUME = Operation("resume", "Resume", resume, _if_declared(preview_resume))
