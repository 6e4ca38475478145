"""Failures by cause: the list of families, and the page of one with the notes on it."""

import re
from collections import Counter
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import family_again, lists
from console.failure_groups import Families, Family, families_of
from console.frame import act, find, must_operate, page, person_of, show
from console.models import FailureNote
from runs.listing import Wanted
from runs.models import Run
from work import clock
from work.operations import once, previews
from work.operations.outcomes import DONE, Outcome, ahead, rehearsed, sentence
from workspaces.models import Workspace

MOST_SHOWN = 100
LONGEST_NOTE = 5000


@page
def failures(request: HttpRequest) -> HttpResponseBase:
    found = families_of(request.user, _wanted(request))
    context = {"families": found.all[:MOST_SHOWN], "found": found, "left_out": len(found.all) - MOST_SHOWN}
    return show(request, "console/failures.html", "Failures", context, live=reverse("console:live"))


@page
def failure(request: HttpRequest, cause: str) -> HttpResponseBase:
    found = families_of(request.user)
    family = _find(found, cause)
    operated = Workspace.objects.operated_by(request.user).filter(pk__in=family.workspace_ids)
    context = {
        "family": family,
        "found": found,
        "shown": family.failures[:MOST_SHOWN],
        "writable": _notes(family, list(operated.order_by("name"))),
        "longest_note": LONGEST_NOTE,
    }
    return show(request, "console/failure.html", "Failure", context, live=reverse("console:live"))


@act
def note(request: HttpRequest, cause: str) -> HttpResponseBase:
    """Save the note of a workspace on a cause; an empty text removes the note."""
    workspace = find(request, Workspace.objects, lists.number(request.POST.get("workspace")) or 0, "workspace")
    must_operate(request, workspace.pk)
    family = _find(families_of(request.user), cause)
    text = request.POST.get("text", "").replace("\0", "").replace("\r\n", "\n").strip()[:LONGEST_NOTE]
    _write(workspace, family, text, by=person_of(request).get_username())
    messages.success(request, f"Saved the note for {workspace}." if text else f"Removed the note for {workspace}.")
    return HttpResponseRedirect(reverse("console:failure", args=[cause]))


@page
def rehearse(request: HttpRequest, cause: str) -> HttpResponseBase:
    """Show what would happen to each run of the family, without doing it."""
    family = _find(families_of(request.user), cause)
    _must_be_theirs(request, family)
    rehearsal = family_again.rehearsed(person_of(request), family)
    context = {
        "family": family,
        "rehearsal": rehearsal,
        "said": rehearsed(rehearsal.outcomes, "runs"),
        "will_do": sum(number for outcome, number in rehearsal.outcomes.items() if outcome in DONE),
        "each": [(each.row, ahead(each.outcome)) for each in rehearsal.each[:MOST_SHOWN]],
        "until": max((each.row.pk for each in rehearsal.each), default=0),
        "once": once.new_key(),
    }
    return show(request, "console/failure_again.html", "Run all of these again", context)


@act
def again(request: HttpRequest, cause: str) -> HttpResponseBase:
    key, until = request.POST.get("once", ""), lists.number(request.POST.get("until"))
    if not re.fullmatch("[A-Za-z0-9_-]{16,64}", key) or until is None:
        return HttpResponseRedirect(reverse("console:rehearse_failure", args=[cause]))
    # If the action was already done, the family may have disappeared as a result.
    if once.find(person_of(request), key) is None:
        family = _find(families_of(request.user), cause)
        _must_be_theirs(request, family)
        if ended := family_again.carry_out_once(person_of(request), family, key, until):
            outcomes = Counter(each.outcome for each in ended)
            level = messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING
            messages.add_message(request, level, sentence(Run, outcomes))
    return HttpResponseRedirect(reverse("console:failure_outcome", args=[cause, key]))


@page
def outcome(request: HttpRequest, cause: str, key: str) -> HttpResponseBase:
    """Show what became of each run, only to the user who requested it."""
    told = once.find(person_of(request), key)
    if told is None or told.get("family", cause) != cause:
        raise Http404("No such result, or you do not have access to it. Results are kept for a day.")
    rows = told.get("rows", ())
    if request.GET.get("format") == "csv":
        return previews.table("run-again", str(Run._meta.verbose_name), rows)
    counts = Counter(Outcome(row[2]) for row in rows)
    said = [(each.value, number, each in DONE) for each, number in counts.items()]
    context = {"told": told, "rows": rows, "counts": said, "cause": cause, "as_of": clock.now()}
    return show(request, "console/failure_outcome.html", f"Result for {len(rows):,} runs", context)


def _wanted(request: HttpRequest) -> Wanted:
    asked = request.GET
    return Wanted(
        workspace_id=lists.number(asked.get("workspace")), configuration_id=lists.number(asked.get("configuration"))
    )


def _find(found: Families, cause: str) -> Family:
    family = found.find(cause)
    if family is None:
        raise Http404("None of the latest failures has this cause, or you do not have access to them.")
    return family


def _must_be_theirs(request: HttpRequest, family: Family) -> None:
    operated = Workspace.objects.operated_by(request.user).filter(pk__in=family.workspace_ids)
    if not (family.is_of_runs and operated.exists()):
        raise PermissionDenied("You must be an operator of one of their workspaces to run them again.")


def _notes(family: Family, operated: list[Workspace]) -> list[tuple[Workspace, FailureNote | None]]:
    """Return the workspaces in which the user may write a note, with the present notes."""
    written = {note.workspace_id: note for note in family.notes}
    return [(workspace, written.get(workspace.pk)) for workspace in operated]


def _write(workspace: Workspace, family: Family, text: str, *, by: str) -> None:
    where: dict[str, Any] = {"workspace": workspace, "cause": family.key}
    if text:
        written = {"text": text, "written_by": by, "written_at": clock.now()}
        FailureNote.objects.update_or_create(**where, defaults=written)
    else:
        FailureNote.objects.filter(**where).delete()
