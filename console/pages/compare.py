"""Compares two runs of one document; the second one is chosen here."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import lists
from console.comparing import MOST_FIELDS, compared
from console.frame import find, page, show
from runs import listing
from runs.models import Run


@page
def compare(request: HttpRequest, id: int) -> HttpResponseBase:
    run = _seen(request, id)
    other = lists.number(request.GET.get("with"))
    if other is None or other == id:
        return _choose(request, run)
    against = _seen(request, other)
    if against.input_document_id != run.input_document_id:
        return _choose(request, run, f"Run {other} is for a different document. Choose a run of this document.")
    # The older run is on the left, whichever was requested first.
    left, right = sorted((run, against), key=lambda each: each.pk)
    context = {"run": run, "sides": (left, right), "found": compared(left, right), "most_fields": MOST_FIELDS}
    live = "" if left.finished_at and right.finished_at else reverse("console:live")
    return show(request, "console/compare.html", f"Run {left.pk} and run {right.pk}", context, live=live)


def _seen(request: HttpRequest, id: int) -> Run:
    found: Run = find(request, Run.objects.listed().select_related("build").defer("build__lock"), id, "run")
    return found


def _choose(request: HttpRequest, run: Run, said: str = "") -> HttpResponseBase:
    wanted = listing.Wanted(input_document_id=run.input_document_id)
    # One extra row for the run itself, and one to know whether there is a next page.
    piece = listing.Piece(lists.ROWS + 2, lists.starts_after(request))
    rows = listing.runs(request.user, wanted, piece).listed().exclude(pk=run.pk)
    if piece.after is not None:
        rows = rows.filter(pk__lt=piece.after)
    others = lists.sliced(request, list(rows.order_by("-pk")[: lists.ROWS + 1]))
    context = {"run": run, "slice": others, "said": said}
    return show(request, "console/compare_with.html", f"Compare run {run.pk}", context, live=reverse("console:live"))
