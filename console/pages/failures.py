"""Failures by cause: the list of families, and the page of one family with its notes."""

import re
from collections import Counter

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import family_again, in_bulk, lists
from console.failure_groups import Families, Family, families_of
from console.frame import act, actor_of, find, must_operate, page, person_of, show
from console.models import FailureNote
from runs.listing import RunFilter
from runs.models import Run
from work import clock
from work.operations import once, previews
from work.operations.outcomes import DONE, forecast, preview_sentence, sentence
from workspaces.models import Workspace

MOST_SHOWN = 100
LONGEST_NOTE = 5000


@page
def failures(request: HttpRequest) -> HttpResponseBase:
    filters = RunFilter(
        workspace_id=lists.number(request.GET.get("workspace")),
        configuration_id=lists.number(request.GET.get("configuration")),
    )
    families = families_of(request.user, filters)
    context = {
        "families": families.all[:MOST_SHOWN],
        "all": families,
        "left_out": len(families.all) - MOST_SHOWN,
    }
    return show(request, "console/failures.html", "Failures", context, live=reverse("console:live"))


@page
def failure(request: HttpRequest, cause: str) -> HttpResponseBase:
    families = families_of(request.user)
    family = _find(families, cause)
    notes = {note.workspace_id: note for note in family.notes}
    context = {
        "family": family,
        "all": families,
        "shown": family.failures[:MOST_SHOWN],
        # The workspaces in which the user may write a note, each with its current note.
        "writable": [(each, notes.get(each.pk)) for each in _operated_workspaces(request, family).order_by("name")],
        "longest_note": LONGEST_NOTE,
    }
    return show(request, "console/failure.html", "Failure", context, live=reverse("console:live"))


@act
def note(request: HttpRequest, cause: str) -> HttpResponseBase:
    """Save a workspace's note on a cause. An empty text removes the note."""
    workspace = find(request, Workspace.objects, lists.number(request.POST.get("workspace")) or 0, "workspace")
    must_operate(request, workspace.pk)
    family = _find(families_of(request.user), cause)
    text = request.POST.get("text", "").replace("\0", "").replace("\r\n", "\n").strip()[:LONGEST_NOTE]
    if text:
        values = {"text": text, "written_by": actor_of(request), "written_at": clock.now()}
        FailureNote.objects.update_or_create(workspace=workspace, cause=family.key, defaults=values)
        messages.success(request, f"Saved the note for {workspace}.")
    else:
        FailureNote.objects.filter(workspace=workspace, cause=family.key).delete()
        messages.success(request, f"Removed the note for {workspace}.")
    return HttpResponseRedirect(reverse("console:failure", args=[cause]))


@page
def rehearse(request: HttpRequest, cause: str) -> HttpResponseBase:
    """Show what would happen to each run of the family, without doing it."""
    family = _find(families_of(request.user), cause)
    _must_operate_one(request, family)
    preview = family_again.preview_again(person_of(request), family)
    context = {
        "family": family,
        "preview": preview,
        "sentence": preview_sentence(preview.outcomes, "runs"),
        "will_do": sum(number for outcome, number in preview.outcomes.items() if outcome in DONE),
        "each": [(each.row, forecast(each.outcome)) for each in preview.each[:MOST_SHOWN]],
        "until": max((each.row.pk for each in preview.each), default=0),
        "once": once.new_key(),
    }
    return show(request, "console/failure_again.html", "Run all of these again", context)


@act
def again(request: HttpRequest, cause: str) -> HttpResponseBase:
    key, until = request.POST.get("once", ""), lists.number(request.POST.get("until"))
    if not re.fullmatch("[A-Za-z0-9_-]{16,64}", key) or until is None:
        return HttpResponseRedirect(reverse("console:rehearse_failure", args=[cause]))
    # Don't look for the family if the action was already done: it may have disappeared as a result.
    if once.find(person_of(request), key) is None:
        family = _find(families_of(request.user), cause)
        _must_operate_one(request, family)
        if results := family_again.run_again_once(person_of(request), family, key, until):
            outcomes = Counter(each.outcome for each in results)
            level = messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING
            messages.add_message(request, level, sentence(Run, outcomes))
    return HttpResponseRedirect(reverse("console:failure_outcome", args=[cause, key]))


@page
def outcome(request: HttpRequest, cause: str, key: str) -> HttpResponseBase:
    """Show the outcome for each run, but only to the user who requested the action."""
    result = once.find(person_of(request), key)
    if result is None or result.get("family", cause) != cause:
        raise Http404("No such result, or you do not have access to it. Results are kept for a day.")
    context = in_bulk.context_of(result) | {"cause": cause}
    rows = context["rows"]
    if request.GET.get("format") == "csv":
        return previews.table("run-again", str(Run._meta.verbose_name), rows)
    return show(request, "console/failure_outcome.html", f"Result for {len(rows):,} runs", context)


def _find(families: Families, cause: str) -> Family:
    family = families.find(cause)
    if family is None:
        raise Http404("None of the latest failures has this cause, or you do not have access to them.")
    return family


def _operated_workspaces(request: HttpRequest, family: Family) -> "QuerySet[Workspace]":
    return Workspace.objects.operated_by(request.user).filter(pk__in=family.workspace_ids)


def _must_operate_one(request: HttpRequest, family: Family) -> None:
    if not (family.is_of_runs and _operated_workspaces(request, family).exists()):
        raise PermissionDenied("You must be an operator of one of their workspaces to run them again.")
