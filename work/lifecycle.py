"""The only module that writes statuses.

Every transition is a conditional update that writes its event in the same transaction. If the row is not as expected,
because another process was first, nothing changes and the function returns False.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol

import structlog
from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Q

from work import clock, failpoints, wakeups
from work.changes import INFO, WARNING, Change, Claimable, EventDraft, Pruning
from work.claims import Claim, LeaseHolder, by_kind, trusted_until
from work.models import Event, Subject, Work
from work.processes.output import storable
from work.sql import portable, returning
from work.sql.contention import Contended, is_contention, patiently
from work.state_machine import By, StateMachine, Transition

LATE_WRITE_REFUSED = "LATE_WRITE_REFUSED"
# The length of the columns that name a person or a worker.
ACTOR_CHARACTERS = 200

log = structlog.get_logger(__name__)

Data = Mapping[str, Any]


class Writer(Protocol):
    """The functions that write changes. `work/sql/returning.py` and `work/sql/portable.py` both implement them."""

    def change_one(self, change: Change) -> Sequence[Any] | None: ...

    def append_events(self, change: Change, entries: Sequence[EventDraft]) -> bool: ...

    def set_column(self, model: type[Subject], guards: Data, name: str, value: Any) -> bool: ...

    def claim_first(self, change: Change, claimable: Claimable, columns: tuple[str, ...]) -> Sequence[Any] | None: ...

    def create(
        self,
        model: type[Subject],
        subject_kind: str,
        values: Data,
        varying: Mapping[str, Sequence[Any]],
        event: EventDraft,
        topic: str,
    ) -> list[int]: ...


def create(
    states: StateMachine,
    values: Data,
    *,
    varying: Mapping[str, Sequence[Any]] | None = None,
    actor: str = "",
    message: str = "",
    data: Data | None = None,
) -> list[int]:
    """Insert one row, or one row per value in the lists of `varying`, with creation events. Return the ids in order."""
    row, event = _new_row(states, values, actor, message, data)
    varying = varying or {}
    constant = {name: value for name, value in row.items() if name not in varying}
    return _writer().create(states.model, states.kind, constant, varying, event, states.kind)


def create_one(
    states: StateMachine, values: Data, *, actor: str = "", message: str = "", data: Data | None = None
) -> Any:
    """Insert one row with its creation event, and return it as a model instance."""
    row, event = _new_row(states, values, actor, message, data)
    (id,) = _writer().create(states.model, states.kind, row, {}, event, states.kind)
    return states.model.from_db(connection.alias, ["id", *row], [id, *row.values()])


def claim_next(states: StateMachine, verb: str, owner: str, claimable: Claimable, *columns: str) -> Claim | None:
    """Claim the first row of `claimable`, if there is one. Raise Contended if the caller should retry next tick."""
    began_at = time.monotonic()
    transition = states[verb]
    (origin,) = transition.origins
    event = EventDraft(transition.event, clock.now(), owner)
    change = _change(states, origin, transition, {"status": origin}, event)
    try:
        with failpoints.inside(f"{states.kind}.claim.selected"):
            row = _writer().claim_first(change, claimable, columns)
    except Exception as error:
        if isinstance(error, IntegrityError) or is_contention(error):
            raise Contended(f"{states.kind}: {error}") from error
        raise
    if row is None:
        return None
    failpoints.hit(f"{states.kind}.claimed")
    return Claim(
        states,
        row[0],
        LeaseHolder(owner, row[2]),
        lease_trusted_until(began_at),
        dict(zip(columns, row[3:], strict=True)),
    )


def lease_trusted_until(began_at: float) -> float:
    """Return until when to trust a lease that was requested at `began_at`. Both are times of the monotonic clock."""
    return trusted_until(began_at, settings.ADE_LEASE_SECONDS)


def move(
    states: StateMachine,
    id: int,
    verb: str,
    *,
    holder: LeaseHolder | None = None,
    actor: str = "",
    message: str = "",
    data: Data | None = None,
    guards: Data | None = None,
    where: Q | None = None,
    earlier: Sequence[EventDraft] = (),
    **sets: Any,
) -> bool:
    """Make a transition. Return False if the row's status does not allow the verb or if a guard fails."""
    clock.keep_measured()
    transition = states[verb]
    if (transition.by is By.HOLDER) != (holder is not None):
        needs = "needs a" if holder is None else "must have no"
        raise TypeError(f"{states.kind} {verb} is made by {transition.by}, so it {needs} holder")
    level = WARNING if sets.get("failure_type") else INFO
    sets = {name: storable(value) if isinstance(value, str) else value for name, value in sets.items()}
    event = EventDraft(transition.event, clock.now(), _signed(actor, holder), storable(message), storable(data), level)
    for origin in transition.origins:
        conditions = {"id": id, "status": origin, **(holder.fence if holder else {}), **(guards or {})}
        change = _change(states, origin, transition, conditions, event, where, sets)
        if _write(replace(change, earlier=earlier) if earlier else change):
            # Worker threads log their own failures, and recovery logs the rows that it moves.
            if level == WARNING and transition.by in (By.POLICY, By.ORCHESTRATOR):
                error = event.message or sets.get("error_message", "")
                log.warning("work.failed", kind=states.kind, id=id, failure_type=sets["failure_type"], error=error)
            return True
    return False


def finish(claim: Claim, verb: str, *, also: Callable[[], object] | None = None, **options: Any) -> bool:
    """Make a transition as the holder of a claim. If it is refused because the claim is gone, record the refusal.

    The claim's pending events and the writes of `also` are committed together with the transition, or not at all.
    """
    with failpoints.inside(f"{claim.states.kind}.finish.before_commit"):
        pending_events = claim.pending_events()
        if also is None:
            moved = move(claim.states, claim.id, verb, holder=claim.holder, earlier=pending_events, **options)
        else:
            with transaction.atomic():
                # Write in the order in which things happened: the pending events, the results, the end.
                if pending_events:
                    record_many(claim, pending_events)
                also()
                moved = move(claim.states, claim.id, verb, holder=claim.holder, **options)
                if not moved:
                    transaction.set_rollback(True)
    failpoints.hit(f"{claim.states.kind}.finish.after_commit")
    # An earlier try may have been committed although the connection broke before the database's answer arrived. So
    # check whether this claim has already ended the row.
    return moved or _own_end(claim) == claim.states[verb].event or refuse_late(claim, verb)


def cancel(states: StateMachine, id: int, *, actor: str, reason: str = "") -> str:
    """Cancel a row that no worker holds, or ask its holder to cancel it. Return the row's status afterwards.

    This is the cancelled status; or the claimed status if the holder was asked, which it must obey; or another status
    if the row had already ended.
    """
    failpoints.hit("cancel.read")
    clock.keep_measured()
    actor = actor[:ACTOR_CHARACTERS]
    unrequested = {"cancel_requested_at__isnull": True}
    while True:
        if move(states, id, "cancel", actor=actor, message=reason):
            return states["cancel"].target
        request: dict[str, Any] = {"cancel_requested_at": clock.now(), "cancel_requested_by": actor}
        if move(states, id, "request_cancel", actor=actor, message=reason, guards=unrequested, **request):
            wakeups.ring("cancel")
        status = states.rows.values_list("status", flat=True).get(pk=id)
        # If the row can be cancelled now, recovery has queued it again between the two calls of `move`: try again.
        if status not in states["cancel"].origins:
            return str(status)


def refuse_late(claim: Claim, verb: str) -> bool:
    """Record that a late write was refused. Always return False.

    Record nothing if the claim still holds the row, because then only a guard failed. Record nothing either if this
    claim itself has just ended the row: the lease thread may notice that before it learns that the work is done.
    """
    row = claim.states.rows.filter(pk=claim.id).values("status", "lease_owner", "claim_token").first()
    if row is None or row == claim.guards:
        return False
    claim.lost.set()
    # Record each verb only once. Otherwise a stale worker that keeps writing its log would fill the history.
    if _own_end(claim) or verb in claim.refused_verbs:
        return False
    claim.refused_verbs.add(verb)
    owner, token = claim.holder.owner, claim.holder.token
    message = f"{verb} came too late: the row is {row['status']} under claim {row['claim_token']}"
    data = {"refused": verb, "token": token, "found": row}
    record(claim.states, claim.id, LATE_WRITE_REFUSED, actor=owner, message=message, data=data, level=WARNING)
    return False


def record(
    states: StateMachine,
    id: int,
    kind: str,
    *,
    claim: Claim | None = None,
    actor: str = "",
    message: str = "",
    data: Data | None = None,
    level: int = INFO,
    guards: Data | None = None,
    **sets: Any,
) -> bool:
    """Write an event that is not a transition, and the columns in `sets`. If `claim` is given, it must hold the row."""
    clock.keep_measured()
    signature = _signed(actor, claim.holder if claim else None)
    event = EventDraft(kind, clock.now(), signature, storable(message), storable(data), level)
    conditions = {"id": id, **(claim.guards if claim else {}), **(guards or {})}
    change = Change(states.model, states.kind, conditions, None, sets, ("last_sequence",), {}, event)
    return _write(change) or (claim is not None and refuse_late(claim, kind))


def record_many(claim: Claim, entries: Sequence[EventDraft]) -> bool:
    """Write a batch of events for a claim with a single update of its row."""
    guards = {"id": claim.id, **claim.guards}
    change = Change(claim.states.model, claim.states.kind, guards, None, {}, (), {}, entries[0])
    return patiently(lambda: _writer().append_events(change, entries)) or refuse_late(claim, "record")


def record_process(claim: Claim, process: Data) -> bool:
    """Store in the row which child process does the work, so that recovery can end it."""
    guards = {"id": claim.id, **claim.guards}
    is_stored = patiently(lambda: _writer().set_column(claim.states.model, guards, "process", process))
    return is_stored or refuse_late(claim, "record_process")


def prune(
    states: StateMachine, ids: Sequence[int], *, where: Q, actor: str, also: Pruning | None = None
) -> dict[int, Data]:
    """Replace the history of each given row that matches `where` with one event, which records the deletion.

    Return id -> what was deleted. The new event has the row's status, as the last deleted event had.
    """
    clock.keep_measured()
    event = EventDraft(states.pruned, clock.now(), _signed(actor, None))
    return dict(portable.prune(states.model, states.kind, ids, where, event, also or (lambda ids: {})))


def renew(owner: str, claims: Iterable[Claim]) -> list[Claim]:
    """Extend all leases of a worker with one update per kind of work. Return the claims that were lost."""
    failpoints.hit("lease.before_renew")
    lost: list[Claim] = []
    for held in by_kind(claims):
        try:
            lost += _extend(owner, held)
        except OperationalError as error:
            if len(held) == 1 or not is_contention(error):
                raise
            # One of the rows is locked. The other rows must not lose their leases because of it.
            lost += _extend_one_by_one(owner, held)
    return lost


def _extend_one_by_one(owner: str, claims: list[Claim]) -> list[Claim]:
    lost: list[Claim] = []
    for claim in claims:
        try:
            lost += _extend(owner, [claim])
        except OperationalError as error:
            if not is_contention(error):
                raise
    return lost


def _extend(owner: str, claims: list[Claim]) -> list[Claim]:
    """Extend the leases of claims that are all of one kind. Return the claims that were lost."""
    states = claims[0].states
    began_at = time.monotonic()
    expires_at = clock.now() + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    # Compare the token too: the same worker may have claimed the row again.
    rows = Q(*[Q(pk=claim.id, claim_token=claim.holder.token) for claim in claims], _connector=Q.OR)
    guards = {"status": states.claimed, "lease_owner": owner}
    portable.update(states.model, guards, rows, lease_expires_at=expires_at)
    extended = states.rows.filter(rows, **guards, lease_expires_at=expires_at)
    held = set(extended.values_list("pk", "claim_token"))
    lost = []
    for claim in claims:
        if (claim.id, claim.holder.token) in held:
            claim.trust(lease_trusted_until(began_at))
        else:
            claim.lost.set()
            refuse_late(claim, "renew")
            lost.append(claim)
    return lost


def _change(
    states: StateMachine,
    origin: str,
    transition: Transition,
    guards: Data,
    event: EventDraft,
    where: Q | None = None,
    values: Data | None = None,
) -> Change:
    """Build the update for a transition. The old and new status determine what happens to the columns of `Work`."""
    target = transition.target
    event = replace(event, from_status=origin, to_status=target)
    sets: dict[str, Any] = {"status": target}
    grows = ["last_sequence"]
    moments = {}
    if issubclass(states.model, Work) and origin != target:
        active, terminal = states.model.ACTIVE, states.model.TERMINAL
        if states.is_claim(transition):
            expires_at = event.at + timedelta(seconds=settings.ADE_LEASE_SECONDS)
            sets |= {"lease_owner": event.actor, "lease_expires_at": expires_at}
            grows.append("claim_token")
        elif origin == states.claimed:
            sets |= {"lease_owner": None, "lease_expires_at": None, "process": None}
        if target == active:
            moments["started_at"] = "created_at"
        elif target in terminal:
            moments["finished_at"] = "started_at"
        elif origin in (active, *terminal):
            sets["started_at"] = None
        if origin in terminal and target not in terminal:
            sets["finished_at"] = None
    return Change(states.model, states.kind, guards, where, {**sets, **(values or {})}, tuple(grows), moments, event)


def _new_row(
    states: StateMachine, values: Data, actor: str, message: str, data: Data | None
) -> tuple[dict[str, Any], EventDraft]:
    """Return a new row and its creation event. The row has all columns, because the database has no defaults."""
    clock.keep_measured()
    event = EventDraft(states.created, clock.now(), _signed(actor, None), message, data, to_status=states.initial)
    fields = [field for field in states.model._meta.concrete_fields if not field.primary_key]
    row = {field.attname: field.get_default() for field in fields}
    initial = {"status": states.initial, "last_sequence": 1, "last_event_at": event.at, "created_at": event.at}
    return {**row, **{name: value for name, value in initial.items() if name in row}, **values}, event


def _signed(actor: str, holder: LeaseHolder | None) -> str:
    return (actor or (holder.owner if holder else ""))[:ACTOR_CHARACTERS]


def _write(change: Change) -> bool:
    # Only the ORM can express a Q or a value that the database computes.
    orm = change.where is not None or any(hasattr(v, "resolve_expression") for v in change.sets.values())
    writer = portable if orm else _writer()
    return patiently(lambda: writer.change_one(change)) is not None


def _writer() -> Writer:
    is_fast = connection.vendor in returning.FAST_VENDORS and not settings.ADE_PORTABLE_SQL
    return returning if is_fast else portable


def _own_end(claim: Claim) -> str | None:
    """Return the kind of the event with which this claim ended its hold on the row."""
    holder, claimed = claim.holder, claim.states.claimed
    events = Event.objects.about(claim.states.kind, claim.id)
    own = events.filter(claim_token=holder.token, actor=holder.owner, from_status=claimed)
    return own.exclude(to_status=claimed).values_list("kind", flat=True).first()
