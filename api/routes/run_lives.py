"""The life of a run: its events and log, why and how long it waits, cancelling it, and running it again."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import Field

from api.callers import OPERATE, caller_of
from api.cancels import Reason, result_of
from api.explanations import ExplanationOut
from api.frame import Out, responses
from api.histories import SubjectEventOut, history_of
from api.idempotency import create_once
from api.logs import LINES_OF_TEXT, Events, Lines, log_of
from api.pages import Page
from api.routes.runs import RunOut, refusals, row_of
from runs import forecast, lifecycle, why
from runs.lifecycle import RUN_STATES
from runs.models import Run

routes = Router(tags=["runs"])


class RunCancelOut(Out):
    result: Annotated[
        Literal["cancelled", "asked"], Field(description="cancelled at once, or its worker was asked to stop")
    ]
    run: RunOut


class ForecastOut(Out):
    status: str
    position: Annotated[int | None, Field(description="1 is next; null if more runs are ahead than are counted")]
    position_in_words: str
    estimated_start: Annotated[datetime | None, Field(description="null if unknown; `based_on` has the reason")]
    based_on: str


@routes.get("/runs/{id:id}/events", response=responses({200: Page[SubjectEventOut]}))
def list_run_events(request: HttpRequest, id: int, listing: Query[Events]) -> dict[str, Any]:
    return history_of(RUN_STATES.kind, caller_of(request).find(Run, id).pk, listing)


@routes.get("/runs/{id:id}/log", response=responses({200: None}), openapi_extra=LINES_OF_TEXT)
def show_run_log(request: HttpRequest, id: int, lines: Query[Lines]) -> HttpResponseBase:
    """Show the output and the log of a run, line by line."""
    return log_of(RUN_STATES.kind, caller_of(request).find(Run, id).pk, lines)


@routes.get("/runs/{id:id}/why", response=responses({200: ExplanationOut}))
def explain_run(request: HttpRequest, id: int) -> dict[str, Any]:
    """Explain what a queued run waits for, what blocks it, and since when."""
    return why.explain(caller_of(request).find(Run, id), user=caller_of(request).user).to_json()


@routes.get("/runs/{id:id}/forecast", response=responses({200: ForecastOut}), summary="Show run forecast")
def forecast_run(request: HttpRequest, id: int) -> dict[str, Any]:
    """Estimate when a queued run will start."""
    return vars(forecast.of(caller_of(request).find(Run, id)))


@routes.post("/runs/{id:id}/cancel", response=responses({200: RunCancelOut}, 409), auth=OPERATE)
def cancel_run(request: HttpRequest, id: int, body: Reason | None = None) -> dict[str, Any]:
    """Cancel a run. A queued run is cancelled at once; a running one is asked to stop."""
    caller = caller_of(request)
    run = caller.find(Run, id)
    caller.require_operator(run.workspace)
    status = lifecycle.cancel(run, actor=caller.actor, reason=body.reason if body else "")
    return {"result": result_of(RUN_STATES, id, run.status, status), "run": row_of(Run.objects.get(pk=id))}


@routes.post("/runs/{id:id}/again", response=responses({201: RunOut}, 409, 410, 422), auth=OPERATE)
def run_again(request: HttpRequest, id: int) -> HttpResponseBase:
    """Start a new run of the same configuration, in its current version, for the same document."""
    caller = caller_of(request)
    run = caller.find(Run, id)
    caller.require_operator(run.workspace)

    def make() -> dict[str, Any]:
        with refusals(run.input_document_id):
            return row_of(lifecycle.run_again(run, actor=caller.actor))

    return create_once(request, 201, make)
