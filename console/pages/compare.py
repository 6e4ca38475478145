"""The comparison of two runs of one document, and the page on which the user chooses the second run."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import comparison, lists
from console.frame import find, page, show
from runs import listing
from runs.models import Run


@page
def compare(request: HttpRequest, id: int) -> HttpResponseBase:
    runs = Run.objects.listed().select_related("build").defer("build__lock")
    run: Run = find(request, runs, id, "run")
    other_id = lists.number(request.GET.get("with"))
    if other_id is None or other_id == id:
        return _choose(request, run)
    other: Run = find(request, runs, other_id, "run")
    if other.input_document_id != run.input_document_id:
        return _choose(request, run, f"Run {other_id} is for a different document. Choose a run of this document.")
    # The older run is always on the left.
    left, right = sorted((run, other), key=lambda each: each.pk)
    context = {
        "run": run,
        "sides": (left, right),
        "comparison": comparison.compare(left, right),
        "most_fields": comparison.MOST_FIELDS,
    }
    live = "" if left.finished_at and right.finished_at else reverse("console:live")
    return show(request, "console/compare.html", f"Run {left.pk} and run {right.pk}", context, live=live)


def _choose(request: HttpRequest, run: Run, problem: str = "") -> HttpResponseBase:
    # Load two extra rows: the run itself, which is excluded below, and one that shows whether there is a next page.
    piece = listing.PageRequest(lists.ROWS + 2, lists.starts_after(request))
    rows = listing.runs(request.user, listing.RunFilter(input_document_id=run.input_document_id), piece)
    context = {"run": run, "slice": lists.slice_of(request, rows.listed().exclude(pk=run.pk)), "problem": problem}
    return show(request, "console/compare_with.html", f"Compare run {run.pk}", context, live=reverse("console:live"))
