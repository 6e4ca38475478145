"""The list of runs, the page of one run (why it waits, its progress, fields and files), and a page for each file."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from builds.models import Build, Configuration
from console import artifact_previews, lists, page_images
from console.findings import findings_of, sheet_of
from console.frame import act, actor_of, back, find, must_operate, operates, page, report, show
from console.logs import last_lines, log_page
from console.timeline import timeline_of
from documents.models import Document
from runs import forecast, lifecycle, listing, operations, why
from runs.lifecycle import RUN_STATES, DocumentFailed, Purged, QueueFull
from runs.models import Artifact, Run
from work.models import Event
from work.operations.outcomes import sentence
from work.operations.previews import reason_of
from workspaces.models import Workspace

MOST_SHOWN = 100
# Why a run is not created. Each says so in a sentence.
REFUSED = (QueueFull, Purged, DocumentFailed)
LATEST_EVENTS = 30
# The parameters that filter the list by another row, with the model of that row.
FILTERS: dict[str, Any] = {
    "workspace": Workspace,
    "configuration": Configuration,
    "build": Build,
    "document": Document,
}


@page
def runs(request: HttpRequest) -> HttpResponseBase:
    outcome = request.GET.get("outcome", "")
    outcome = outcome if outcome in Run.OUTCOMES else ""
    ids = {name: lists.number(request.GET.get(name)) for name in FILTERS}
    wanted = listing.RunFilter(
        workspace_id=ids["workspace"],
        configuration_id=ids["configuration"],
        build_id=ids["build"],
        input_document_id=ids["document"],
        outcomes=(outcome,) if outcome else None,
    )
    rows = listing.runs(request.user, wanted, listing.PageRequest(lists.ROWS + 1, lists.starts_after(request)))
    context = {
        "slice": lists.slice_of(request, rows.listed()),
        "outcomes": Run.OUTCOMES,
        "outcome": outcome,
        # The name of each filter with its row, which is None if the user may not see it.
        "filters": [
            (name, FILTERS[name].objects.for_user(request.user).filter(pk=id).first())
            for name, id in ids.items()
            if id is not None
        ],
    }
    return show(request, "console/runs.html", "Runs", context, live=reverse("console:live"))


@page
def run(request: HttpRequest, id: int) -> HttpResponseBase:
    run: Run = find(request, Run.objects.listed().select_related("build").defer("build__lock"), id, "run")
    explanation = why.explain(run, user=request.user) if run.status == Run.Status.QUEUED else None
    has_succeeded = run.status == Run.Status.SUCCEEDED
    fields = findings_of(list(run.fields.order_by("position")[:MOST_SHOWN])) if has_succeeded else []
    events = Event.objects.about(RUN_STATES.kind, id)
    context = {
        "run": run,
        "may": operates(request, run.workspace_id),
        "explanation": explanation,
        "forecast": forecast.of_explained(run, explanation) if explanation and explanation.gates else None,
        "timeline": timeline_of(run, events),
        "fields": fields,
        "sheet": sheet_of(request, run, fields),
        "artifacts": run.artifacts.order_by("pk")[:MOST_SHOWN] if has_succeeded else (),
        "log": last_lines(RUN_STATES.kind, id),
        "events": events.exclude(kind="LOG").order_by("-sequence")[:LATEST_EVENTS],
    }
    live = reverse("console:live_one", args=["run", id]) if run.finished_at is None else ""
    return show(request, "console/run.html", f"Run {id}", context, live=live)


@page
def log(request: HttpRequest, id: int) -> HttpResponseBase:
    """Show the log of a run on a page with a search, or send it as a file."""
    find(request, Run.objects, id, "run")
    return log_page(request, RUN_STATES.kind, id, f"Run {id}", reverse("console:run", args=[id]))


@act
def cancel(request: HttpRequest, id: int) -> HttpResponseBase:
    run = _operated_run(request, id)
    outcome = operations.cancel(run, actor=actor_of(request), reason=reason_of(request))
    report(request, outcome, sentence(Run, Counter([outcome]), RUN_STATES.claimed))
    return back(request, reverse("console:run", args=[id]))


@act
def again(request: HttpRequest, id: int) -> HttpResponseBase:
    run = _operated_run(request, id)
    try:
        new = lifecycle.run_again(run, actor=actor_of(request))
    except REFUSED as error:
        messages.warning(request, str(error))
        return back(request, reverse("console:run", args=[id]))
    messages.success(request, f"Started run {new.pk}, a repeat of run {id}.")
    return back(request, reverse("console:run", args=[new.pk]))


@act
def submit(request: HttpRequest, id: int) -> HttpResponseBase:
    """Run a configuration over a document, and show the new run."""
    document: Document = find(request, Document.objects.listed(), id, "document")
    must_operate(request, document.workspace_id)
    chosen = lists.number(request.POST.get("configuration")) or 0
    configuration = Configuration.objects.filter(workspace=document.workspace_id, pk=chosen).first()
    if configuration is None:
        messages.error(request, "Nothing was started: choose a configuration of the document's workspace.")
        return back(request, reverse("console:document", args=[id]))
    waits = "at_once" not in request.POST
    try:
        run = lifecycle.submit(configuration, document, actor=actor_of(request), wait_for_processing=waits)
    except REFUSED as error:
        messages.warning(request, str(error))
        return back(request, reverse("console:document", args=[id]))
    messages.success(request, f"Started run {run.pk} of {configuration.name}.")
    return HttpResponseRedirect(reverse("console:run", args=[run.pk]))


@page
def artifact(request: HttpRequest, id: int) -> HttpResponseBase:
    file: Artifact = find(request, Artifact.objects.listed(), id, "artifact")
    look = artifact_previews.preview_of(file, max(1, lists.number(request.GET.get("page")) or 1))
    return show(request, "console/artifact.html", f"File {id}", {"artifact": file, "look": look})


@page
def artifact_page(request: HttpRequest, id: int, number: int) -> HttpResponseBase:
    file: Artifact = find(request, Artifact.objects.listed(), id, "artifact")
    try:
        source = artifact_previews.image_source(file)
    except artifact_previews.NotShown as error:
        raise Http404(str(error)) from error
    return page_images.response(source, number)


def _operated_run(request: HttpRequest, id: int) -> Run:
    run: Run = find(request, Run.objects.listed(), id, "run")
    must_operate(request, run.workspace_id)
    return run
