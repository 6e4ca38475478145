"""The words in which a kind of work declares its state machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from work.models import Subject, Work


class By(StrEnum):
    PERSON = "a person"
    WORKER = "a worker that claims"
    HOLDER = "the worker that holds the claim"
    ORCHESTRATOR = "the orchestrator"
    RECOVERY = "recovery"
    POLICY = "a rule of the application"


@dataclass(frozen=True)
class Move:
    origins: tuple[str, ...]
    target: str
    by: By
    event: str


@dataclass(frozen=True)
class Moves:
    """The table of one kind: verb -> move. The table is the state machine."""

    kind: str
    model: type[Subject]
    table: Mapping[str, Move]
    # Where a new row starts, and the event that says so.
    initial: str
    created: str
    # The event that stays in the place of all others, when the history of a row is kept no longer; with `pruned_at`.
    pruned: str = ""

    def __getitem__(self, verb: str) -> Move:
        return self.table[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    @property
    def rows(self) -> "QuerySet[Any]":
        """All of them, untyped: what they have in common is said by Work, what they have not by the caller."""
        return self.model._base_manager.all()

    @property
    def claimed(self) -> str | None:
        return self.model.CLAIMED if issubclass(self.model, Work) else None

    def is_claim(self, move: Move) -> bool:
        return move.target == self.claimed not in move.origins
