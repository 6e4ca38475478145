"""Runs all failed runs of a family again: first a preview, then the action, which has an outcome for each run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db.models import Exists, OuterRef

from console.failure_groups import Family
from console.in_bulk import apply_once
from runs.models import BACKWARDS, OUTCOME, Run
from runs.operations import RUN_AGAIN
from work.operations.outcomes import Outcome
from work.operations.previews import OperationResult, Preview, RowResult, preview
from workspaces.models import Workspace


def preview_again(person: AbstractUser, family: Family) -> Preview:
    return preview(_runs(family), RUN_EACH_AGAIN, _is_theirs(person))


def run_again_once(person: AbstractUser, family: Family, key: str, until: int) -> list[RowResult] | None:
    """Run the family's failed runs with IDs up to `until` again, and store the outcomes under the key. A second request
    with the same key does nothing and returns None.
    """
    runs = _runs(family).filter(pk__lte=until).order_by("pk")
    about = {"family": family.key, "cause": family.cause}
    return apply_once(person, key, runs, RUN_EACH_AGAIN, _is_theirs(person), about)


def _runs(family: Family) -> Any:
    runs: Any = Run.objects.listed().filter(pk__in=[failure.id for failure in family.failures])
    same: Any = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(
        input_document=OuterRef("input_document_id"), configuration=OuterRef("configuration_id")
    )
    # Any later run counts, whatever its outcome. The query uses the expressions of the index.
    newer = same.filter(now__in=Run.OUTCOMES, backwards__lt=OuterRef("backwards"))
    return runs.annotate(backwards=BACKWARDS).annotate(has_newer=Exists(newer))


def _run_again(run: Any, *, actor: str) -> Outcome | OperationResult:
    return Outcome.HAS_NEWER if run.has_newer else RUN_AGAIN.do(run, actor=actor)


# Run each document only once: a newer run of the same configuration means that the document was already run again.
RUN_EACH_AGAIN = replace(
    RUN_AGAIN, do=_run_again, predict=lambda run: Outcome.HAS_NEWER if run.has_newer else RUN_AGAIN.predict(run)
)


def _is_theirs(person: AbstractUser) -> Callable[[Any], bool]:
    mine = set(Workspace.objects.operated_by(person).values_list("pk", flat=True))
    return lambda run: run.workspace_id in mine
