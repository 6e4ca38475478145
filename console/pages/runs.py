"""The list of runs, and the page of one with what it waits for, does, found and made."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from builds.models import Build, Configuration
from console import lists
from console.findings import findings_of, sheet_of
from console.frame import act, back, find, must_operate, operates, page, person_of, reason_of, show
from console.logs import last_lines, log_page
from console.timeline import timeline_of
from documents.models import Document
from runs import forecast, lifecycle, listing, why
from runs.lifecycle import RUN_STATES, Purged, QueueFull
from runs.models import Run
from work.models import Event
from work.operations.outcomes import DONE, Outcome, of_cancel, sentence
from workspaces.models import Workspace

MOST_SHOWN = 100
LATEST_EVENTS = 30


@page
def runs(request: HttpRequest) -> HttpResponseBase:
    wanted = _wanted(request)
    piece = listing.Piece(lists.ROWS + 1, lists.starts_after(request))
    found = listing.runs(request.user, wanted, piece).listed()
    if piece.after is not None:
        found = found.filter(pk__lt=piece.after)
    context = {
        "slice": lists.sliced(request, list(found.order_by("-pk")[: piece.most])),
        "outcomes": Run.OUTCOMES,
        "outcome": (wanted.outcomes or ("",))[0],
        "narrowed": _narrowed(request, wanted),
    }
    return show(request, "console/runs.html", "Runs", context, live=reverse("console:live"))


@page
def run(request: HttpRequest, id: int) -> HttpResponseBase:
    found: Run = find(request, Run.objects.listed().select_related("build").defer("build__lock"), id, "run")
    explanation = why.explain(found, user=request.user) if found.status == "queued" else None
    has_found = found.status == "succeeded"
    fields = findings_of(list(found.fields.order_by("position")[:MOST_SHOWN])) if has_found else []
    events = Event.objects.about(RUN_STATES.kind, id)
    context = {
        "run": found,
        "may": operates(request, found.workspace_id),
        "explanation": explanation,
        "forecast": forecast.of_explained(found, explanation) if explanation and explanation.gates else None,
        "timeline": timeline_of(found, events),
        "fields": fields,
        "sheet": sheet_of(request, found, fields),
        "artifacts": found.artifacts.order_by("pk")[:MOST_SHOWN] if has_found else (),
        "log": last_lines(RUN_STATES.kind, id),
        "events": events.exclude(kind="LOG").order_by("-sequence")[:LATEST_EVENTS],
    }
    live = reverse("console:live_one", args=["run", id]) if found.finished_at is None else ""
    return show(request, "console/run.html", f"Run {id}", context, live=live)


@page
def log(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show the whole log of a run, with a search, or send it as a file."""
    find(request, Run.objects, id, "run")
    return log_page(request, RUN_STATES.kind, id, f"Run {id}", reverse("console:run", args=[id]))


@act
def cancel(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _operated(request, id)
    after = lifecycle.cancel(found, actor=person_of(request).get_username(), reason=reason_of(request))
    _tell(request, of_cancel(RUN_STATES, found.status, after))
    return back(request, reverse("console:run", args=[id]))


@act
def again(request: HttpRequest, id: int) -> HttpResponseBase:
    found = _operated(request, id)
    try:
        new = lifecycle.run_again(found, actor=person_of(request).get_username())
    except (QueueFull, Purged) as refused:
        messages.warning(request, str(refused))
        return back(request, reverse("console:run", args=[id]))
    messages.success(request, f"Started run {new.pk}, a repeat of run {id}.")
    return back(request, reverse("console:run", args=[new.pk]))


def _operated(request: HttpRequest, id: int) -> Run:
    found: Run = find(request, Run.objects.listed(), id, "run")
    must_operate(request, found.workspace_id)
    return found


def _tell(request: HttpRequest, outcome: Outcome) -> None:
    said = sentence(Run, Counter([outcome]), RUN_STATES.claimed)
    messages.add_message(request, messages.SUCCESS if outcome in DONE else messages.WARNING, said)


def _wanted(request: HttpRequest) -> listing.Wanted:
    asked = request.GET
    outcome = asked.get("outcome", "")
    return listing.Wanted(
        workspace_id=lists.number(asked.get("workspace")),
        configuration_id=lists.number(asked.get("configuration")),
        build_id=lists.number(asked.get("build")),
        input_document_id=lists.number(asked.get("document")),
        outcomes=(outcome,) if outcome in Run.OUTCOMES else None,
    )


def _narrowed(request: HttpRequest, wanted: listing.Wanted) -> list[tuple[str, Any]]:
    """Return the filters with their rows; None for rows that the user may not see."""
    chosen: tuple[tuple[str, Any, int | None], ...] = (
        ("workspace", Workspace.objects, wanted.workspace_id),
        ("configuration", Configuration.objects, wanted.configuration_id),
        ("build", Build.objects, wanted.build_id),
        ("document", Document.objects, wanted.input_document_id),
    )
    return [(name, rows.for_user(request.user).filter(pk=id).first()) for name, rows, id in chosen if id is not None]
