"""Previews and results of an operator's action on many rows.

A preview does nothing and promises nothing, because rows change meanwhile. The result reports what has happened.
"""

from collections import Counter
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpResponse

from work.operations import spreadsheets
from work.operations.commands import clean
from work.operations.outcomes import Outcome, rehearsed

# Limit for the rows of one click, because a person and a web process wait for it.
MOST_AT_ONCE = 1000
# A preview of more rows covers only the oldest.
MOST_PREVIEWED = 10_000
LONGEST_NAME, LONGEST_REASON = 100, 500
HEAD = ("row", "id", "name", "outcome", "new")

IsTheirs = Callable[[Any], bool]


class OperationResult(NamedTuple):
    outcome: Outcome
    # The new row, if the verb creates one.
    made: Model | None = None


@dataclass(frozen=True)
class Operation:
    """An action of a person on a row, with its preview.

    `do` is called with `actor`, and with `reason` if `takes_reason` is set.
    """

    do: Callable[..., Outcome | OperationResult]
    # Predicts the outcome from the row without changing anything. It is called in the order of the action.
    foreseen: Callable[[Any], Outcome]
    takes_reason: bool = False


class RowPreview(NamedTuple):
    row: Any
    outcome: Outcome


@dataclass(frozen=True)
class Preview:
    """The preview of rows, oldest first."""

    each: list[RowPreview]
    # Whether there are more rows than the preview covers.
    is_cut: bool

    @property
    def outcomes(self) -> "Counter[Outcome]":
        return Counter(foreseen.outcome for foreseen in self.each)

    @property
    def said(self) -> str:
        return rehearsed(self.outcomes, "oldest matches" if self.is_cut else "selected")


class RowResult(NamedTuple):
    id: int
    name: str
    outcome: Outcome
    made: Model | None


def preview(rows: Any, wish: Operation, is_theirs: IsTheirs) -> Preview:
    """Preview the action on a queryset. Its order does not matter."""
    found = list(rows.order_by("pk")[: MOST_PREVIEWED + 1])
    each = [_foreseen(row, wish, is_theirs) for row in found[:MOST_PREVIEWED]]
    return Preview(each, is_cut=len(found) > MOST_PREVIEWED)


def apply(
    rows: Iterable[Any],
    wish: Operation,
    is_theirs: IsTheirs,
    ended: MutableSequence[RowResult],
    *,
    actor: str,
    reason: str,
) -> None:
    """Apply the action in this order to each row that the user may operate.

    Each outcome is added to `ended` at once, so that a caller can report the progress if this raises.
    """
    told = {"actor": actor} | ({"reason": reason} if wish.takes_reason else {})
    for row in rows:
        did = wish.do(row, **told) if is_theirs(row) else Outcome.NOT_YOURS
        outcome, made = did if isinstance(did, OperationResult) else (did, None)
        ended.append(RowResult(row.pk, named(row), outcome, made))


def told(ended: Iterable[RowResult], page_of: Callable[[Model], str]) -> list[tuple[int, str, str, str, str]]:
    """Return the results in a form that can be stored: id, name, outcome, and the name and page of the new row."""
    return [
        (each.id, each.name, each.outcome.value, *((called(each.made), page_of(each.made)) if each.made else ("", "")))
        for each in ended
    ]


def table(name: str, kind: str, rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """Return stored results as a CSV file."""
    return spreadsheets.table(name, HEAD, ((kind, *row[:4]) for row in rows))


def called(row: Model) -> str:
    return f"{row._meta.verbose_name} {row.pk}"


def named(row: Model) -> str:
    name = clean(" ".join(str(row).split()))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _foreseen(row: Any, wish: Operation, is_theirs: IsTheirs) -> RowPreview:
    return RowPreview(row, wish.foreseen(row) if is_theirs(row) else Outcome.NOT_YOURS)
