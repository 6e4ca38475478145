"""The types with which each app declares the state machines of its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from work.models import Subject, Work

# Event kind -> meaning, for every kind of work that workers claim.
CLAIM_EVENTS = {
    "RECOVERED": (
        "The receipt of recovery: the claim that was found, when its lease expired, the last heartbeat of its worker,"
        " what happened to its child process, and the rule that was applied."
    ),
    "LATE_WRITE_REFUSED": (
        "A worker tried to write under a claim that it had lost; the data have the refused verb and the state of the"
        " row."
    ),
}
LOG_EVENT = {"LOG": "A line of output; the data name the stream. Lines are written in batches, and limited."}


class By(StrEnum):
    PERSON = "a person"
    WORKER = "a worker that claims"
    HOLDER = "the worker that holds the claim"
    ORCHESTRATOR = "the orchestrator"
    RECOVERY = "recovery"
    POLICY = "a rule of the application"


@dataclass(frozen=True)
class Transition:
    origins: tuple[str, ...]
    target: str
    by: By
    event: str


@dataclass(frozen=True)
class StateMachine:
    """The state machine of one kind of row: a mapping of verb -> transition."""

    kind: str
    model: type[Subject]
    table: Mapping[str, Transition]
    # The status of a new row, and the kind of the event that records its creation.
    initial: str
    created: str
    # The kind of the event that replaces all others when a row's history is pruned, or "" if it never is. A model that
    # can be pruned has `pruned_at`.
    pruned: str = ""
    # Event kind -> meaning, including events that no transition writes. `CLAIM_EVENTS` has the events of claims.
    events: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, verb: str) -> Transition:
        return self.table[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    @property
    def rows(self) -> "QuerySet[Any]":
        """All rows. The type is `Any` because different kinds share only their base columns."""
        return self.model._base_manager.all()

    @property
    def claimed(self) -> str | None:
        return self.model.CLAIMED if issubclass(self.model, Work) else None

    def is_claim(self, transition: Transition) -> bool:
        return transition.target == self.claimed not in transition.origins
