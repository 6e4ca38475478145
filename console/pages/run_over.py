"""Runs a configuration over many documents: choose, start, and see the outcome for each."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from builds.models import Configuration
from console import in_bulk, lists
from console.frame import act, page, person_of, query, show
from documents import listing
from documents.listing import Filters
from documents.models import Document
from runs import operations
from runs.models import Run
from work.operations import once
from work.operations.outcomes import DONE, forecast, sentence
from work.operations.previews import MOST_AT_ONCE, table
from workspaces.models import Workspace

MOST_CONFIGURATIONS = 1000
_KEY = re.compile("[A-Za-z0-9_-]{16,64}")


@page
def choose(request: HttpRequest) -> HttpResponseBase:
    """Show the documents of a configuration's workspace. Documents without a run of it are chosen."""
    configurations = _configurations(request)
    chosen = lists.number(request.GET.get("configuration"))
    configuration = next((each for each in configurations if each.pk == chosen), None)
    type = request.GET.get("type") or None
    context: dict[str, Any] = {"configurations": configurations, "configuration": configuration, "type": type}
    if configuration is not None:
        wanted = Filters(configuration.workspace_id, type=type)
        rows = listing.documents(request.user, wanted, lists.ROWS + 1, behind=lists.starts_after(request))
        slice = lists.sliced(request, rows)
        context |= {
            "slice": slice,
            "each": _each(configuration, slice.rows, request.GET.get("choose", "")),
            "places": operations.free_places(),
            "once": once.new_key(),
        }
    return show(request, "console/run_over.html", "Run a configuration over documents", context)


@act
def start(request: HttpRequest) -> HttpResponseBase:
    key, chosen = request.POST.get("once", ""), lists.number(request.POST.get("configuration"))
    configuration = next((each for each in _configurations(request) if each.pk == chosen), None)
    ids = [id for text in request.POST.getlist("id")[:MOST_AT_ONCE] if (id := lists.number(text)) is not None]
    if configuration is None or not ids or not _KEY.fullmatch(key):
        messages.warning(request, "Nothing was started: choose a configuration and at least one document.")
        kept = query(request.GET, configuration=chosen, type=request.POST.get("type"))
        return HttpResponseRedirect(f"{reverse('console:document_runs')}?{kept}")
    documents = Document.objects.listed().filter(pk__in=ids, workspace=configuration.workspace_id).order_by("pk")
    about, operation = {"configuration": configuration.name}, operations.run_over(configuration)
    results = in_bulk.apply_once(person_of(request), key, documents, operation, _is_theirs, about)
    if results is not None:
        outcomes = Counter(each.outcome for each in results)
        level = messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING
        messages.add_message(request, level, sentence(Document, outcomes))
    return HttpResponseRedirect(reverse("console:document_runs_outcome", args=[key]))


@page
def outcome(request: HttpRequest, key: str) -> HttpResponseBase:
    """Show the outcome for each document, but only to the user who started the runs."""
    result = once.find(person_of(request), key)
    if result is None or (result and "configuration" not in result):
        raise Http404("No such result, or you do not have access to it. Results are kept for a day.")
    context = in_bulk.context_of(result)
    rows = context["rows"]
    if request.GET.get("format") == "csv":
        return table("run-over", str(Document._meta.verbose_name), rows)
    title = f"Result for {len(rows):,} {'document' if len(rows) == 1 else 'documents'}" if result else "Starting runs"
    return show(request, "console/run_over_outcome.html", title, context)


def _configurations(request: HttpRequest) -> list[Configuration]:
    operated = Workspace.objects.operated_by(request.user)
    if not operated.exists():
        raise PermissionDenied("You must be an operator of a workspace to run a configuration.")
    rows = Configuration.objects.listed().filter(workspace__in=operated).order_by("name", "pk")
    return list(rows[:MOST_CONFIGURATIONS])


def _each(configuration: Configuration, documents: Sequence[Document], choose: str) -> list[dict[str, Any]]:
    """Return each document with its latest run of the configuration and what a new run would do.

    Chosen are all, none, or otherwise those without a run.
    """
    runs = Run.objects.filter(configuration=configuration, input_document__in=documents).order_by("pk")
    latest = {run.input_document_id: run for run in runs.defer("error_message")}
    operation = operations.run_over(configuration)
    rows = []
    for document in documents:
        outcome, run = operation.predict(document), latest.get(document.pk)
        is_possible = outcome in DONE
        rows.append(
            {
                "document": document,
                "run": run,
                "expected": forecast(outcome) if is_possible else outcome.value,
                "is_possible": is_possible,
                "is_chosen": is_possible and (choose == "all" or (choose != "none" and run is None)),
            }
        )
    return rows


def _is_theirs(document: Document) -> bool:
    """All documents are of the workspace of a configuration that the person operates."""
    return True
