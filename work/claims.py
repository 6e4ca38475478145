"""Claims on rows, as the worker that holds them sees them."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event as Flag
from threading import Lock
from typing import Any

from work.changes import EventDraft
from work.processes.child import Child
from work.state_machine import StateMachine

LEASE_LOST = "lease_lost"
CANCEL_REQUESTED = "cancel_requested"
WORKER_STOPPING = "worker_stopping"
# The share of the lease that a worker leaves unused. In this time it can end its child process before another worker
# may start one for the same row.
MARGIN = 0.2


class Interrupted(Exception):
    """The work was stopped before it was done. `reason` is one of the constants above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ResultRefused(Exception):
    """The database refuses to store the result of the work, and would refuse it again."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"The database refused the result: {' '.join(str(error).split())}")


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The values that a row must still have for a write by the claim's holder to succeed."""

    owner: str
    token: int

    @property
    def fence(self) -> dict[str, Any]:
        return {"lease_owner": self.owner, "claim_token": self.token}


@dataclass(eq=False)
class Claim:
    states: StateMachine
    id: int
    holder: LeaseHolder
    # A time of the monotonic clock. It is counted from just before the lease was requested.
    trusted_until: float
    values: Mapping[str, Any] = field(default_factory=dict)
    lost: Flag = field(default_factory=Flag)
    cancel_requested: Flag = field(default_factory=Flag)
    stopping: Flag = field(default_factory=Flag)
    child: Child | None = None
    # The child that has already been asked to stop because the worker ends.
    ending: Child | None = None
    # Returns the events that are not written yet. They are written in the same transaction as the end of the work.
    pending_events: Callable[[], Sequence[EventDraft]] = tuple
    # Verbs for which a refused late write has been recorded already.
    refused_verbs: set[str] = field(default_factory=set)
    # Slow clean-up, run after the end of the work has been recorded.
    afterwards: ExitStack = field(default_factory=ExitStack)

    def __str__(self) -> str:
        return f"{self.states.kind} {self.id}"

    @property
    def guards(self) -> dict[str, Any]:
        """The conditions that the row meets while this claim holds it."""
        return {"status": self.states.claimed, **self.holder.fence}

    def forget(self) -> None:
        """Break this ended claim's reference cycles, so that Python frees it without a garbage collection."""
        self.child, self.ending, self.pending_events = None, None, tuple

    def take_charge_of(self, child: Child) -> None:
        """Make the child end when this claim does, even if this worker's process is suspended."""
        self.child = child
        child.trust_until(self.trusted_until)

    def trust(self, until: float) -> None:
        self.trusted_until = until
        if self.child is not None:
            self.child.trust_until(until)

    def end(self, grace_seconds: float) -> None:
        """Stop the work because the worker ends. Call this repeatedly: a child may have started since the last call."""
        self.stopping.set()
        child = self.child
        if child is not None and child is not self.ending:
            self.ending = child
            child.stop(self.why_stop() or WORKER_STOPPING, grace_seconds)

    def is_trusted(self) -> bool:
        return not self.lost.is_set() and time.monotonic() < self.trusted_until

    def why_stop(self) -> str | None:
        """Return the reason why the work must end, or None while it may go on."""
        if not self.is_trusted():
            return LEASE_LOST
        if self.cancel_requested.is_set():
            return CANCEL_REQUESTED
        return WORKER_STOPPING if self.stopping.is_set() else None

    def go_on(self) -> None:
        """Raise Interrupted if the work must end. Work without a child process calls this now and then."""
        if reason := self.why_stop():
            raise Interrupted(reason)


class Holdings:
    """All claims of a worker, shared by its threads."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._lock = Lock()

    def __iter__(self) -> Iterator[Claim]:
        with self._lock:
            return iter(list(self._claims))

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        with self._lock:
            self._claims.append(claim)
        try:
            yield
        finally:
            with self._lock:
                self._claims.remove(claim)


def by_kind(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Group claims by kind. The rows of one kind are in one table, so one query per group is enough."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.states.kind, []).append(claim)
    return list(groups.values())


def trusted_until(began_at: float, lease_seconds: float) -> float:
    return began_at + lease_seconds * (1 - MARGIN)
