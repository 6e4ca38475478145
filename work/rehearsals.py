"""What a person wants done with many rows: first what would become of each, and then what really became of it.

A rehearsal does nothing and promises nothing: rows go on meanwhile. The outcome tells what has happened.
"""

from collections import Counter
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpResponse

from work import spreadsheets
from work.commands import clean
from work.outcomes import Outcome, rehearsed

# What one click may do: somebody waits for it, and so does the web process.
MOST_AT_ONCE = 1000
# Of more it is told what would become of the oldest.
MOST_REHEARSED = 10_000
LONGEST_NAME, LONGEST_REASON = 100, 500
HEAD = ("row", "id", "name", "outcome", "new")

IsTheirs = Callable[[Any], bool]


class Did(NamedTuple):
    outcome: Outcome
    # The row that was made, where the verb makes a new one.
    made: Model | None = None


@dataclass(frozen=True)
class Wish:
    """Of one verb: what it does with a row, and what it would do. `do` is called with `actor`, and with `reason` where
    it takes one.
    """

    do: Callable[..., Outcome | Did]
    # From the row as it is, without doing anything; asked in the order in which it would be done.
    foreseen: Callable[[Any], Outcome]
    takes_reason: bool = False


class Foreseen(NamedTuple):
    row: Any
    outcome: Outcome


@dataclass(frozen=True)
class Rehearsal:
    """Of rows, the oldest first."""

    each: list[Foreseen]
    # Whether there are more of them than were looked at.
    is_cut: bool

    @property
    def outcomes(self) -> "Counter[Outcome]":
        return Counter(foreseen.outcome for foreseen in self.each)

    @property
    def said(self) -> str:
        return rehearsed(self.outcomes, "oldest of those that match" if self.is_cut else "selected")


class Ended(NamedTuple):
    id: int
    name: str
    outcome: Outcome
    made: Model | None


def rehearse(rows: Any, wish: Wish, is_theirs: IsTheirs) -> Rehearsal:
    """Of a queryset, in whatever order."""
    found = list(rows.order_by("pk")[: MOST_REHEARSED + 1])
    each = [_foreseen(row, wish, is_theirs) for row in found[:MOST_REHEARSED]]
    return Rehearsal(each, is_cut=len(found) > MOST_REHEARSED)


def carry_out(
    rows: Iterable[Any], wish: Wish, is_theirs: IsTheirs, ended: MutableSequence[Ended], *, actor: str, reason: str
) -> None:
    """Do it to each row that is theirs, in this order. What has become of each is in `ended` at once: if this stops in
    the middle, it can be told how far it came.
    """
    told = {"actor": actor} | ({"reason": reason} if wish.takes_reason else {})
    for row in rows:
        did = wish.do(row, **told) if is_theirs(row) else Outcome.NOT_YOURS
        outcome, made = did if isinstance(did, Did) else (did, None)
        ended.append(Ended(row.pk, named(row), outcome, made))


def told(ended: Iterable[Ended], page_of: Callable[[Model], str]) -> list[tuple[int, str, str, str, str]]:
    """To be kept: id, name, outcome, and what the new row is called and where its page is."""
    return [
        (each.id, each.name, each.outcome.value, *((called(each.made), page_of(each.made)) if each.made else ("", "")))
        for each in ended
    ]


def table(name: str, kind: str, rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """Of what `told` has answered."""
    return spreadsheets.table(name, HEAD, ((kind, *row[:4]) for row in rows))


def called(row: Model) -> str:
    return f"{row._meta.verbose_name} {row.pk}"


def named(row: Model) -> str:
    name = clean(" ".join(str(row).split()))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _foreseen(row: Any, wish: Wish, is_theirs: IsTheirs) -> Foreseen:
    return Foreseen(row, wish.foreseen(row) if is_theirs(row) else Outcome.NOT_YOURS)
