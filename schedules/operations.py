"""The actions on jobs that people apply to one or many rows: see `work/operations/previews.py`."""

from schedules import history, requests
from schedules.jobs import UnknownJob, all_jobs, job_named
from schedules.models import ScheduledJob
from work.operations.outcomes import Outcome, preview_pause, preview_resume
from work.operations.previews import Operation


def run_now() -> Operation:
    def run_one(row: ScheduledJob, *, actor: str) -> Outcome:
        try:
            requests.run_now(job_named(row.name), actor=actor)
        except UnknownJob:
            return Outcome.NOT_FOUND
        return Outcome.DUE

    declared = {job.name for job in all_jobs()}
    return Operation(run_one, lambda row: Outcome.DUE if row.name in declared else Outcome.NOT_FOUND)


def pause() -> Operation:
    def pause_one(row: ScheduledJob, *, actor: str, reason: str) -> Outcome:
        return Outcome.PAUSED if history.pause(row, actor=actor, reason=reason) else Outcome.WAS_PAUSED

    return Operation(pause_one, preview_pause, takes_reason=True)


def resume() -> Operation:
    def resume_one(row: ScheduledJob, *, actor: str) -> Outcome:
        return Outcome.RESUMED if history.resume(row, actor=actor) else Outcome.NOT_PAUSED

    return Operation(resume_one, preview_resume)
