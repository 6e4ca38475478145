"""Actions on many rows that run only once, and what their pages show of each row."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.urls import reverse

from work import clock
from work.operations import once
from work.operations.outcomes import DONE, Outcome
from work.operations.previews import IsTheirs, Operation, RowResult, apply, storable_rows


def apply_once(
    person: AbstractUser,
    key: str,
    rows: Collection[Any],
    operation: Operation,
    is_theirs: IsTheirs,
    about: dict[str, Any],
) -> list[RowResult] | None:
    """Apply an operation that makes runs, and store the outcomes with `about` under the key. A second request with the
    same key does nothing and returns None.
    """
    if not once.begin(person, key):
        return None
    results: list[RowResult] = []
    try:
        apply(rows, operation, is_theirs, results, actor=person.get_username(), reason="")
    finally:
        # Store the outcomes even after an error, because the runs that were started before it are not undone.
        stored = storable_rows(results, lambda run: reverse("console:run", args=[run.pk]))
        once.keep(person, key, {**about, "rows": stored})
    return results


def context_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return what `_outcomes.html` shows of a stored result."""
    rows = result.get("rows", ())
    outcomes = Counter(Outcome(row[2]) for row in rows)
    counts = [(each.value, number, each in DONE) for each, number in outcomes.items()]
    return {"result": result, "rows": rows, "counts": counts, "as_of": clock.now()}
