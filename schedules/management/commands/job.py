import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from schedules import history, job_status, ledger, operations, requests, why
from schedules.jobs import Job, UnknownJob, job_named
from schedules.models import DueSlot, JobRun, ScheduledJob
from schedules.requests import NotASlot, SlotTaken
from work import clock
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    actor_of,
    add_actor,
    add_limit,
    clean,
    fields,
    limit,
    moment,
    not_found,
    table,
)
from work.operations.outcomes import Outcome
from work.operations.watching import LOOK_SECONDS, in_words

COLUMNS = (
    "id",
    "job_name",
    "scheduled_for",
    "status",
    "started_at",
    "finished_at",
    "worker_instance",
    "rows_processed",
    "error_message",
)
JOBS_SHOWN = ("name", "about", "schedule", "next_slot", "state", "last_outcome", "last_success")
RUNS_SHOWN = ("id", "job_name", "scheduled_for", "status", "finished_at", "rows_processed", "error_message")
SLOTS_SHOWN = ("slot", "state", "job_run", "started_at", "finished_at", "rows_processed", "by", "told")
# The default number of future slots in `ledger`.
COMING = 3
HINT = "`manage.py job list` shows them"


class Command(NounCommand):
    help = "Scheduled jobs, their slots and their runs."

    def add_verbs(self, add: AddVerb) -> None:
        add("list", self.list_jobs, "List the jobs with the next slot and the last result of each.")
        runs = add("runs", self.list_job_runs, "List job runs, newest first.")
        runs.add_argument("--status", choices=JobRun.Status.values)
        runs.add_argument("--job", metavar="NAME")
        add_limit(runs)
        _add_name(add("why", self.why, "Explain why a job's slot has not started: what blocks it, and since when."))
        slots = add("ledger", self.ledger, "List the slots of a job with the state of each, newest first.")
        _add_name(slots)
        _add_range(slots, required=False)
        slots.add_argument(
            "--limit", type=limit, default=50, help="maximum number of rows, newest first (default: %(default)s)"
        )
        trigger = add(
            "trigger", self.trigger, "Run a job now, outside its schedule; with --slot, run one of its slots."
        )
        _add_name(trigger)
        which = trigger.add_mutually_exclusive_group()
        which.add_argument("--slot", metavar="TIME", type=moment, help="run this slot, which has no run yet")
        which.add_argument("--again", metavar="TIME", type=moment, help="run now, replacing this slot, which has a run")
        trigger.add_argument(
            "--wait", action="store_true", help="wait until it has ended; exit code 0 only for a success"
        )
        add_actor(trigger)
        pause = add("pause", self.pause, "Pause a job: its slots are skipped until it is resumed.")
        pause.add_argument("--reason", default="", help="reason, recorded in the history")
        resume = add("resume", self.resume, "Resume a job with its next slot.")
        for verb in (pause, resume):
            _add_name(verb)
            add_actor(verb)
        backfill = add("backfill", self.backfill, "Run all slots of a range that have no run yet, oldest first.")
        _add_name(backfill)
        _add_range(backfill, required=True)
        backfill.add_argument("--rehearse", action="store_true", help="preview: list the slots without running them")
        add_actor(backfill)

    def list_jobs(self, **_: Any) -> Answer:
        rows = [asdict(status) for status in job_status.of_all()]
        shown = []
        for row in rows:
            state = str(row["state"])
            if state == "paused":
                state = f"paused by {row['paused_by']}"
            elif state == "running":
                state = f"running since {row['running_since']:%H:%M:%S}"
            shown.append(row | {"state": state})
        return Answer({"jobs": rows}, table(shown, *JOBS_SHOWN))

    def list_job_runs(self, *, status: str | None, job: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        job_runs = JobRun.objects.order_by("-id")
        job_runs = job_runs.filter(status=status) if status else job_runs
        job_runs = job_runs.filter(job_name=job) if job else job_runs
        job_runs = job_runs.filter(pk__lt=before) if before else job_runs
        rows = list(job_runs.values(*COLUMNS)[:limit])
        return Answer({"job_runs": rows}, table(rows, *RUNS_SHOWN))

    def why(self, *, name: str, **_: Any) -> Answer:
        explanation = why.explain(_row_of(name))
        return Answer(explanation.to_json(), in_words(explanation))

    def ledger(self, *, name: str, since: datetime | None, until: datetime | None, limit: int, **_: Any) -> Answer:
        job = _row_of(name)
        entries: Sequence[ledger.Entry] = []
        if job.pk is not None and since is None and until is None:
            entries = ledger.latest(job, past=limit, coming=COMING)
        elif job.pk is not None:
            entries = ledger.of(job, since=since, until=until or clock.now(), most=limit)
        now = job_status.of(name)
        data = {"job": now.name, "last_success": now.last_success, "next_slot": now.next_slot}
        counts = ledger.counts(entries)
        rows = [asdict(entry) for entry in entries]
        shown = []
        for row in rows:
            remarks = [] if row["is_scheduled"] else ["by hand"]
            if row["asked_by"] and row["job_run"]:
                remarks.append(f"requested by {row['asked_by']}")
            if row["covers"]:
                remarks.append(f"replaces {row['covers']:%Y-%m-%d %H:%M}")
            if row["reason"]:
                remarks.append(row["reason"])
            shown.append(row | {"state": _spaced(row["state"]), "told": "; ".join(remarks)})
        total = ", ".join(f"{number} {_spaced(state)}" for state, number in counts.items()) or "no slots"
        summary = {"shown": total, "last success": now.last_success, "next slot": now.next_slot}
        return Answer(data | {"counts": counts, "slots": rows}, f"{table(shown, *SLOTS_SHOWN)}\n\n{fields(summary)}")

    def trigger(
        self,
        *,
        name: str,
        slot: datetime | None,
        again: datetime | None,
        wait: bool,
        actor: str | None,
        **_: Any,
    ) -> Answer:
        job, person = _job(name), actor_of(actor)
        with _refusals(job):
            if slot is not None:
                due = requests.run_slot(job, slot, actor=person)
            else:
                due = requests.run_now(job, actor=person, covers=again)
        explanation = why.explain_due(due)
        data = {"job": name, "slot": due.scheduled_for, "covers": due.covers, "why": explanation.to_json()}
        if not wait:
            return Answer(data | {"job_run": None}, in_words(explanation))
        self.stderr.write(clean(explanation.message))
        job_run = _wait_for(due)
        row = {column: getattr(job_run, column) for column in COLUMNS}
        exit = Exit.DONE if job_run.status == JobRun.Status.SUCCESS else Exit.REFUSED
        return Answer(data | {"job_run": row}, fields(row), exit)

    def pause(self, *, name: str, reason: str, actor: str | None, **_: Any) -> Answer:
        return _answer_of_pause(name, operations.pause(_declared(name, actor), actor=actor_of(actor), reason=reason))

    def resume(self, *, name: str, actor: str | None, **_: Any) -> Answer:
        return _answer_of_pause(name, operations.resume(_declared(name, actor), actor=actor_of(actor)))

    def backfill(
        self, *, name: str, since: datetime, until: datetime, rehearse: bool, actor: str | None, **_: Any
    ) -> Answer:
        job = _job(name)
        with _refusals(job):
            if rehearse:
                slots = requests.preview_backfill(job, since, until)
            else:
                slots = requests.backfill(job, since, until, actor=actor_of(actor))
        then = "would run" if rehearse else "are due and will run one after another, oldest first"
        summary = f"{len(slots.free)} slots {then}; {len(slots.taken)} already ran or are waiting."
        data = {"rehearsed": rehearse, "job": name, "free": slots.free, "taken": slots.taken}
        return Answer(data, f"{table([{'slot': slot} for slot in slots.free], 'slot')}\n\n{summary}")


def _wait_for(due: DueSlot) -> JobRun:
    while True:
        # Check for the due slot first: if a worker claims it after this, the job run is found below.
        is_waiting = DueSlot.objects.filter(pk=due.pk).exists()
        job_run = JobRun.objects.filter(job_name=due.job_name, scheduled_for=due.scheduled_for).first()
        if job_run and job_run.finished_at:
            return job_run
        if not is_waiting and job_run is None:
            message = f"The slot {due.scheduled_for.isoformat()} of {due.job_name} was deleted before it ran."
            raise Failure(message, Exit.REFUSED, "slot_gone", job=due.job_name)
        time.sleep(LOOK_SECONDS)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def _add_range(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--from",
        dest="since",
        metavar="TIME",
        type=moment,
        required=required,
        help="start of the range (ISO 8601, default zone: UTC)",
    )
    parser.add_argument(
        "--to", dest="until", metavar="TIME", type=moment, required=required, help="end of the range (inclusive)"
    )


def _job(name: str) -> Job:
    try:
        return job_named(name)
    except UnknownJob as error:
        raise not_found("job", name, HINT) from error


def _row_of(name: str) -> ScheduledJob:
    """Return the row of a job, which may be retired. For a job that no worker has seen yet, return an unsaved row."""
    if row := ScheduledJob.objects.filter(name=name).first():
        return row
    job = _job(name)
    return ScheduledJob(name=name, cron=job.cron, time_zone=job.time_zone)


def _declared(name: str, actor: str | None) -> ScheduledJob:
    history.introduce(_job(name), actor=actor_of(actor))
    return ScheduledJob.objects.get(name=name)


@contextmanager
def _refusals(job: Job) -> Iterator[None]:
    try:
        yield
    except SlotTaken as taken:
        details = {"job_run": taken.job_run.pk, "status": taken.job_run.status} if taken.job_run else {}
        raise Failure(str(taken), Exit.REFUSED, taken.code, job=job.name, **details) from taken
    except NotASlot as error:
        raise Failure(str(error), Exit.REFUSED, "not_a_slot", job=job.name, nearest=error.nearest) from error


def _answer_of_pause(name: str, outcome: Outcome) -> Answer:
    now = job_status.of(name)
    data = {"job": name, "result": outcome, "paused_by": now.paused_by or None, "paused_at": now.paused_at}
    exit = Exit.DONE if outcome in (Outcome.PAUSED, Outcome.RESUMED) else Exit.REFUSED
    return Answer(data, fields(data), exit)


def _spaced(state: str) -> str:
    return state.replace("_", " ")
