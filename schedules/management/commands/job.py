import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from schedules import asking, history, job_status, ledger, why
from schedules.asking import NotASlot, SlotTaken
from schedules.jobs import Job, UnknownJob, job_named
from schedules.models import DueSlot, JobRun, ScheduledJob
from work import clock
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    Row,
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
# The default number of coming slots in `ledger`.
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
        self._add_ledger(add)
        self._add_trigger(add)
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

    def _add_ledger(self, add: AddVerb) -> None:
        verb = add("ledger", self.ledger, "List the slots of a job with the state of each, newest first.")
        _add_name(verb)
        _add_range(verb, required=False)
        verb.add_argument(
            "--limit", type=limit, default=50, help="maximum number of rows, newest first (default: %(default)s)"
        )

    def _add_trigger(self, add: AddVerb) -> None:
        verb = add("trigger", self.trigger, "Run a job now, outside its schedule; with --slot, run one of its slots.")
        _add_name(verb)
        which = verb.add_mutually_exclusive_group()
        which.add_argument("--slot", metavar="TIME", type=moment, help="run this slot, which has no run yet")
        which.add_argument("--again", metavar="TIME", type=moment, help="run now, replacing this slot, which has a run")
        verb.add_argument("--wait", action="store_true", help="wait until it has ended; exit code 0 only for a success")
        add_actor(verb)

    def list_jobs(self, **_: Any) -> Answer:
        rows = [asdict(standing_now) for standing_now in job_status.of_all()]
        return Answer({"jobs": rows}, table([row | {"state": _state(row)} for row in rows], *JOBS_SHOWN))

    def list_job_runs(self, *, status: str | None, job: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        found = JobRun.objects.order_by("-id")
        found = found.filter(status=status) if status else found
        found = found.filter(job_name=job) if job else found
        found = found.filter(pk__lt=before) if before else found
        rows = list(found.values(*COLUMNS)[:limit])
        return Answer({"job_runs": rows}, table(rows, *RUNS_SHOWN))

    def why(self, *, name: str, **_: Any) -> Answer:
        found = why.explain(_row_of(name))
        return Answer(found.to_json(), in_words(found))

    def ledger(self, *, name: str, since: datetime | None, until: datetime | None, limit: int, **_: Any) -> Answer:
        row = _row_of(name)
        if row.pk is None:
            entries: Sequence[ledger.Entry] = []
        elif since is None and until is None:
            entries = ledger.latest(row, past=limit, coming=COMING)
        else:
            entries = ledger.of(row, since=since, until=until or clock.now(), most=limit)
        return _answer_of_ledger(job_status.of(name), entries)

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
        job, signed = _job(name), actor_of(actor)
        with _refusals(job):
            if slot is not None:
                due = asking.run_slot(job, slot, actor=signed)
            else:
                due = asking.run_now(job, actor=signed, covers=again)
        found = why.explain_due(due)
        told = {"job": name, "slot": due.scheduled_for, "covers": due.covers, "why": found.to_json(), "job_run": None}
        if not wait:
            return Answer(told, in_words(found))
        self.stderr.write(clean(found.message))
        run = self._until_ended(job, due)
        row = {column: getattr(run, column) for column in COLUMNS}
        exit = Exit.DONE if run.status == JobRun.Status.SUCCESS else Exit.REFUSED
        return Answer(told | {"job_run": row}, fields(row), exit)

    def pause(self, *, name: str, reason: str, actor: str | None, **_: Any) -> Answer:
        done = history.pause(_declared(name, actor), actor=actor_of(actor), reason=reason)
        return _answer_of_pause(name, Outcome.PAUSED if done else Outcome.WAS_PAUSED)

    def resume(self, *, name: str, actor: str | None, **_: Any) -> Answer:
        done = history.resume(_declared(name, actor), actor=actor_of(actor))
        return _answer_of_pause(name, Outcome.RESUMED if done else Outcome.NOT_PAUSED)

    def backfill(
        self, *, name: str, since: datetime, until: datetime, rehearse: bool, actor: str | None, **_: Any
    ) -> Answer:
        job = _job(name)
        with _refusals(job):
            if rehearse:
                found = asking.rehearse(job, since, until)
            else:
                found = asking.backfill(job, since, until, actor=actor_of(actor))
        would = "would run" if rehearse else "are due and will run one after another, oldest first"
        said = f"{len(found.free)} slots {would}; {len(found.taken)} already ran or are waiting."
        shown = table([{"slot": slot} for slot in found.free], "slot")
        told = {"rehearsed": rehearse, "job": name, "free": found.free, "taken": found.taken}
        return Answer(told, f"{shown}\n\n{said}")

    def _until_ended(self, job: Job, due: DueSlot) -> JobRun:
        while True:
            # Check this first: if the slot has been claimed since, its row is found below.
            waits = DueSlot.objects.filter(pk=due.pk).exists()
            run = JobRun.objects.filter(job_name=job.name, scheduled_for=due.scheduled_for).first()
            if run and run.finished_at:
                return run
            if not waits and run is None:
                said = f"The slot {due.scheduled_for.isoformat()} of {job.name} was deleted before it ran."
                raise Failure(said, Exit.REFUSED, "slot_gone", job=job.name)
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
    """Return the row of a job. A job that no worker has seen yet gets an unsaved one; retired jobs are found too."""
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
    done = outcome in (Outcome.PAUSED, Outcome.RESUMED)
    now = job_status.of(name)
    told = {"job": name, "result": outcome, "paused_by": now.paused_by or None, "paused_at": now.paused_at}
    return Answer(told, fields(told), Exit.DONE if done else Exit.REFUSED)


def _answer_of_ledger(now: job_status.JobStatus, entries: Sequence[ledger.Entry]) -> Answer:
    counts = ledger.counts(entries)
    rows = [asdict(entry) for entry in entries]
    said = ", ".join(f"{number} {_spaced(state)}" for state, number in counts.items()) or "no slots"
    summary = {"shown": said, "last success": now.last_success, "next slot": now.next_slot}
    told = {"job": now.name, "last_success": now.last_success, "next_slot": now.next_slot}
    shown = [row | {"state": _spaced(row["state"]), "told": _told(row)} for row in rows]
    return Answer(told | {"counts": counts, "slots": rows}, f"{table(shown, *SLOTS_SHOWN)}\n\n{fields(summary)}")


def _told(row: Row) -> str:
    said = []
    if not row["is_scheduled"]:
        said.append("by hand")
    if row["asked_by"] and row["job_run"]:
        said.append(f"requested by {row['asked_by']}")
    if row["covers"]:
        said.append(f"replaces {row['covers']:%Y-%m-%d %H:%M}")
    return "; ".join([*said, *([row["reason"]] if row["reason"] else [])])


def _state(row: Row) -> str:
    if row["state"] == "paused":
        return f"paused by {row['paused_by']}"
    return f"running since {row['running_since']:%H:%M:%S}" if row["state"] == "running" else str(row["state"])


def _spaced(state: str) -> str:
    return state.replace("_", " ")
