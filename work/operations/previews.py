"""Previews and results of an operator's action on many rows.

A preview changes nothing and promises nothing, because rows may change before the action. The result reports what the
action did.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from work.operations import spreadsheets
from work.operations.commands import clean
from work.operations.outcomes import DONE, Outcome, preview_sentence

# The maximum number of rows that one click changes, because a person and a web process wait for it.
MOST_AT_ONCE = 1000
# The maximum number of rows in a preview. If there are more, it covers the oldest.
MOST_PREVIEWED = 10_000
LONGEST_NAME, LONGEST_REASON = 100, 500
# The outcomes that make a new row.
_NEED_PLACES = (Outcome.MADE, Outcome.STARTED)
HEAD = ("row", "id", "name", "outcome", "new")

IsTheirs = Callable[[Any], bool]


def reason_of(request: HttpRequest) -> str:
    return " ".join(request.POST.get("reason", "").replace("\0", "").split())[:LONGEST_REASON]


class OperationResult(NamedTuple):
    outcome: Outcome
    # The new row, if the operation created one.
    made: Model | None = None


@dataclass(frozen=True)
class Operation:
    """Something that a person can do to a row. Each app declares its operations once, in `operations.py`. The admin
    offers each operation as a list action and as a button.
    """

    # The name is part of URLs.
    name: str
    label: str
    # Called with the row, with `actor`, with `reason` if `takes_reason` is set, and with `in_bulk` if `knows_bulk` is.
    do: Callable[..., Outcome | OperationResult]
    # Predicts the outcome from the row without changing anything.
    predict: Callable[[Any], Outcome]
    takes_reason: bool = False
    knows_bulk: bool = False
    # Returns how many new rows there is room for. None means any number.
    capacity: Callable[[], int | None] = lambda: None

    def apply_to(self, row: Any, **options: Any) -> OperationResult:
        result = self.do(row, **options)
        return result if isinstance(result, OperationResult) else OperationResult(result)

    def is_offered(self, row: Any) -> bool:
        """Return whether the page of this row should have the operation's button."""
        return self.predict(row) in DONE


class RowPreview(NamedTuple):
    row: Any
    outcome: Outcome


@dataclass(frozen=True)
class Preview:
    """The preview of an operation on some rows, oldest first."""

    each: list[RowPreview]
    # Whether there are more rows than the preview covers.
    is_cut: bool

    @property
    def outcomes(self) -> "Counter[Outcome]":
        return Counter(each.outcome for each in self.each)

    @property
    def message(self) -> str:
        return preview_sentence(self.outcomes, "oldest matches" if self.is_cut else "selected")


class RowResult(NamedTuple):
    id: int
    name: str
    outcome: Outcome
    made: Model | None


def preview(rows: Any, operation: Operation, is_theirs: IsTheirs) -> Preview:
    """Preview the operation on a queryset, oldest rows first whatever the queryset's order."""
    oldest = list(rows.order_by("pk")[: MOST_PREVIEWED + 1])
    each = []
    places = operation.capacity()
    for row in oldest[:MOST_PREVIEWED]:
        outcome = operation.predict(row) if is_theirs(row) else Outcome.NOT_YOURS
        if outcome in _NEED_PLACES and places is not None:
            outcome = outcome if places else Outcome.NO_PLACE
            places = max(0, places - 1)
        each.append(RowPreview(row, outcome))
    return Preview(each, is_cut=len(oldest) > MOST_PREVIEWED)


def apply(
    rows: Collection[Any],
    operation: Operation,
    is_theirs: IsTheirs,
    results: MutableSequence[RowResult],
    *,
    actor: str,
    reason: str,
) -> None:
    """Apply the operation to each row that the user may operate, in the given order.

    Each result is added to `results` at once, so that the caller can report the progress even if a row raises an error.
    """
    options: dict[str, Any] = {"actor": actor}
    if operation.takes_reason:
        options["reason"] = reason
    if operation.knows_bulk:
        options["in_bulk"] = len(rows) > 1
    for row in rows:
        outcome, made = operation.apply_to(row, **options) if is_theirs(row) else OperationResult(Outcome.NOT_YOURS)
        name = clean(" ".join(str(row).split()))
        name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        results.append(RowResult(row.pk, name, outcome, made))


def storable_rows(
    results: Iterable[RowResult], page_of: Callable[[Model], str]
) -> list[tuple[int, str, str, str, str]]:
    """Convert results to a form that can be stored: id, name, outcome, and the title and page of the new row."""
    rows = []
    for id, name, outcome, made in results:
        title, page = (title_of(made), page_of(made)) if made else ("", "")
        rows.append((id, name, outcome.value, title, page))
    return rows


def table(name: str, kind: str, rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """Return stored results as a CSV file."""
    return spreadsheets.table(name, HEAD, ((kind, *row[:4]) for row in rows))


def title_of(row: Model) -> str:
    return f"{row._meta.verbose_name} {row.pk}"
