"""Running all of a family of failures again: what would become of each, and then what has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db.models import Exists, Model, OuterRef
from django.urls import reverse

from console.families import Family
from documents.models import Workspace
from runs import wishes
from runs.models import BACKWARDS, OUTCOME, Run
from work import once
from work.outcomes import Outcome
from work.rehearsals import Did, Ended, Rehearsal, Wish, carry_out, rehearse, told


def rehearsed(person: AbstractUser, family: Family) -> Rehearsal:
    return rehearse(_runs(family), _wish(), _is_theirs(person))


def carry_out_once(person: AbstractUser, family: Family, key: str, until: int) -> list[Ended]:
    """Of the runs up to this one. What has become of each is kept under the key; whoever comes with it again does
    nothing.
    """
    ended: list[Ended] = []
    if not once.begin(person, key):
        return ended
    runs = _runs(family).filter(pk__lte=until).order_by("pk")
    try:
        carry_out(runs, _wish(), _is_theirs(person), ended, actor=person.get_username(), reason="")
    finally:
        # Also when one row is too much: what was done before it is done.
        once.keep(person, key, {"family": family.key, "cause": family.cause, "rows": told(ended, _page_of)})
    return ended


def _runs(family: Family) -> Any:
    runs: Any = Run.objects.listed().filter(pk__in=[failure.id for failure in family.failures])
    same: Any = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(
        input_document=OuterRef("input_document_id"), configuration=OuterRef("configuration_id")
    )
    # In the words of an index: one that came later, whatever has become of it.
    newer = same.filter(now__in=Run.OUTCOMES, backwards__lt=OuterRef("backwards"))
    return runs.annotate(backwards=BACKWARDS).annotate(has_newer=Exists(newer))


def _wish() -> Wish:
    """Each document once: what has a newer run of the same configuration was run again already, or will be."""
    again = wishes.again()

    def do(run: Any, *, actor: str) -> Outcome | Did:
        return Outcome.HAS_NEWER if run.has_newer else again.do(run, actor=actor)

    def ahead(run: Any) -> Outcome:
        return Outcome.HAS_NEWER if run.has_newer else again.foreseen(run)

    return replace(again, do=do, foreseen=ahead)


def _is_theirs(person: AbstractUser) -> Callable[[Any], bool]:
    mine = set(Workspace.objects.operated_by(person).values_list("pk", flat=True))
    return lambda run: run.workspace_id in mine


def _page_of(row: Model) -> str:
    return reverse("console:run", args=[row.pk])
