"""The slots of scheduled jobs: their results, and requests to run them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field, model_validator

from api.callers import INSTALLATION, insider_of
from api.errors import Problem, not_found
from api.frame import In, Out, responses
from api.idempotency import create_once
from api.moments import Moment
from api.pages import LIMIT, MOST_ROWS, Listing, Page, page
from api.routes.jobs import CHANGE, find_job, row_of
from schedules import job_status, ledger, requests
from schedules.jobs import Job
from schedules.ledger import State
from schedules.models import DueSlot, JobRun
from schedules.requests import NotASlot, SlotTaken
from work import clock
from work.operations import encoding

routes = Router(tags=["jobs"])

# Number of upcoming slots that a ledger shows if the request gives no range.
COMING = 3


class SlotOut(Out):
    slot: datetime
    state: State
    is_scheduled: bool
    job_run: int | None
    started_at: datetime | None
    finished_at: datetime | None
    rows_processed: int | None
    by: str
    asked_by: str
    covers: datetime | None
    into: datetime | None
    reason: str


class LedgerOut(Out):
    job: str
    last_success: datetime | None
    next_slot: datetime | None
    counts: dict[str, int]
    slots: list[SlotOut]


class JobRunOut(Out):
    id: int
    job_name: str
    scheduled_for: datetime
    status: str
    started_at: datetime
    finished_at: datetime | None
    worker_instance: str | None
    rows_processed: int | None
    failure_type: str
    error_message: str


class DueSlotOut(Out):
    id: int
    job: str
    slot: datetime
    due_at: datetime
    asked_by: str
    in_stead_of: datetime | None


class BackfillOut(Out):
    job: str
    rehearsed: bool
    free: Annotated[list[datetime], Field(description="slots that are run, or would be run")]
    taken: Annotated[list[datetime], Field(description="slots that were already run or are already due")]


class LedgerOf(Schema):
    """Without a range: the latest slots, and the next ones."""

    model_config = ConfigDict(extra="forbid")

    since: Annotated[Moment | None, Field(alias="from")] = None
    until: Annotated[Moment | None, Field(alias="to", description="inclusive")] = None
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="maximum number of slots, newest first")] = LIMIT


class JobRuns(Listing):
    status: Literal["running", "success", "failed", "skipped_timeout"] | None = None


class Trigger(In):
    """With neither: run now, in addition to the schedule."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["slot", "in_stead_of"]}})

    slot: Annotated[Moment | None, Field(description="run this slot of the schedule, which has no run yet")] = None
    in_stead_of: Annotated[
        Moment | None, Field(description="run now to replace this slot, which already has a run")
    ] = None

    @model_validator(mode="after")
    def one_of_them(self) -> "Trigger":
        # Both names together are refused even if both values are null, as in the JSON schema.
        if {"slot", "in_stead_of"} <= self.model_fields_set:
            raise ValueError("give either slot or in_stead_of, not both")
        return self


class BackfillRange(In):
    since: Annotated[Moment, Field(alias="from")]
    until: Annotated[Moment, Field(alias="to", description="inclusive")]
    rehearse: Annotated[bool, Field(description="only list the slots that would be run")] = False


@routes.get("/jobs/{name:name}/ledger", response=responses({200: LedgerOut}))
def show_ledger(request: HttpRequest, name: str, query: Query[LedgerOf]) -> dict[str, Any]:
    """Show the result of each slot of a job, newest first."""
    insider_of(request)
    row, status = row_of(name), job_status.of(name)
    entries: Sequence[ledger.Entry] = []
    if row.pk is not None and query.since is None and query.until is None:
        entries = ledger.latest(row, past=query.limit, coming=COMING)
    elif row.pk is not None:
        entries = ledger.of(row, since=query.since, until=query.until or clock.now(), most=query.limit)
    return {
        "job": name,
        "last_success": status.last_success,
        "next_slot": status.next_slot,
        "counts": ledger.counts(entries),
        "slots": [asdict(entry) for entry in entries],
    }


@routes.get("/jobs/{name:name}/runs", response=responses({200: Page[JobRunOut]}))
def list_runs(request: HttpRequest, name: str, listing: Query[JobRuns]) -> dict[str, Any]:
    """List the runs of a job, one per slot that a worker claimed."""
    insider_of(request)
    row_of(name)
    rows = JobRun.objects.filter(job_name=name, **listing.filters())
    return page(rows, listing, JobRunOut.of)


@routes.get("/jobs/{name:name}/runs/{id:id}", response=responses({200: JobRunOut}))
def show_run(request: HttpRequest, name: str, id: int) -> dict[str, Any]:
    insider_of(request)
    row = JobRun.objects.filter(job_name=name, pk=id).first()
    if row is None:
        raise not_found("job_run", id)
    return JobRunOut.of(row)


@routes.post("/jobs/{name:name}/runs", response=responses({201: DueSlotOut}, 409, 422), auth=INSTALLATION)
def trigger(request: HttpRequest, name: str, body: Trigger | None = None) -> HttpResponseBase:
    """Run a job now, or run one of its slots. The ledger shows the result."""
    caller, job, choice = insider_of(request, CHANGE), find_job(name), body or Trigger()

    def make() -> dict[str, Any]:
        with _refusals(job):
            if choice.slot is not None:
                return _row_of_due(requests.run_slot(job, choice.slot, actor=caller.actor))
            return _row_of_due(requests.run_now(job, actor=caller.actor, covers=choice.in_stead_of))

    return create_once(request, 201, make)


@routes.post(
    "/jobs/{name}/backfill", response=responses({200: BackfillOut, 201: BackfillOut}, 409, 422), auth=INSTALLATION
)
def backfill(request: HttpRequest, name: str, body: BackfillRange) -> HttpResponseBase:
    """Run all slots of a range that have no run yet, oldest first (201). A preview changes nothing (200)."""
    caller, job = insider_of(request, CHANGE), find_job(name)

    def make() -> dict[str, Any]:
        with _refusals(job):
            if body.rehearse:
                slots = requests.preview_backfill(job, body.since, body.until)
            else:
                slots = requests.backfill(job, body.since, body.until, actor=caller.actor)
        return {"job": name, "rehearsed": body.rehearse, "free": slots.free, "taken": slots.taken}

    return create_once(request, 200 if body.rehearse else 201, make)


def _row_of_due(due: DueSlot) -> dict[str, Any]:
    return {
        "id": due.pk,
        "job": due.job_name,
        "slot": due.scheduled_for,
        "due_at": due.due_at,
        "asked_by": due.asked_by,
        "in_stead_of": due.covers,
    }


@contextmanager
def _refusals(job: Job) -> Iterator[None]:
    try:
        yield
    except SlotTaken as taken:
        run = taken.job_run
        details = {"job": job.name, "job_run": run.pk if run else None, "status": run.status if run else None}
        raise Problem(taken.code, str(taken), details) from taken
    except NotASlot as error:
        nearest = [encoding.moment(slot) for slot in error.nearest]
        raise Problem("not_a_slot", str(error), {"job": job.name, "nearest": nearest}) from error
