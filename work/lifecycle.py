"""The one writer of status. Every move is a conditional update with its event in the same transaction; a move that
finds its row otherwise changes nothing and answers False: somebody else has decided.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol

from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Q

from work import clock, failpoints, portable, sql, wakeups
from work.changes import INFO, WARNING, Change, Claimable, Pruning, Told
from work.children.output import storable
from work.claims import Claim, Holder, by_kind, trusted_until
from work.contention import Contended, is_contention, patiently
from work.models import Event, Subject, Work
from work.moves import By, Move, Moves

LATE_WRITE_REFUSED = "LATE_WRITE_REFUSED"
# As many as the columns of people and workers have.
ACTOR_CHARACTERS = 200

Data = Mapping[str, Any]


class Writer(Protocol):
    """How changes are written: `work/sql.py` or `work/portable.py`."""

    def change_one(self, change: Change) -> Sequence[Any] | None: ...

    def tell_many(self, change: Change, entries: Sequence[Told]) -> bool: ...

    def remember(self, model: type[Subject], guards: Data, name: str, value: Any) -> bool: ...

    def claim_first(self, change: Change, claimable: Claimable, columns: tuple[str, ...]) -> Sequence[Any] | None: ...

    def create(
        self,
        model: type[Subject],
        subject_kind: str,
        values: Data,
        varying: Mapping[str, Sequence[Any]],
        told: Told,
        topic: str,
    ) -> list[int]: ...


def create(
    moves: Moves,
    values: Data,
    *,
    varying: Mapping[str, Sequence[Any]] | None = None,
    actor: str = "",
    message: str = "",
    data: Data | None = None,
) -> list[int]:
    """Insert a row, or one for each value of `varying`, with the event that says so; answers their ids in order."""
    told = _birth(moves, actor, message, data)
    row = {**_defaults(moves, told), **values}
    varying = varying or {}
    constant = {name: value for name, value in row.items() if name not in varying}
    return _writer().create(moves.model, moves.kind, constant, varying, told, moves.kind)


def create_one(moves: Moves, values: Data, *, actor: str = "", message: str = "", data: Data | None = None) -> Any:
    """The same for one row; answers it as an instance of its model."""
    told = _birth(moves, actor, message, data)
    row = {**_defaults(moves, told), **values}
    (id,) = _writer().create(moves.model, moves.kind, row, {}, told, moves.kind)
    return moves.model.from_db(connection.alias, ["id", *row], [id, *row.values()])


def claim_next(moves: Moves, verb: str, owner: str, claimable: Claimable, *columns: str) -> Claim | None:
    """Claim the first of `claimable`. None: there is none. Raises Contended when the next tick may have more luck."""
    asked_at = time.monotonic()
    made = moves[verb]
    (origin,) = made.origins
    change = _change(moves, origin, made, {"status": origin}, Told(made.event, clock.now(), owner))
    try:
        with failpoints.inside(f"{moves.kind}.claim.selected"):
            row = _writer().claim_first(change, claimable, columns)
    except Exception as error:
        if isinstance(error, IntegrityError) or is_contention(error):
            raise Contended(f"{moves.kind}: {error}") from error
        raise
    if row is None:
        return None
    failpoints.hit(f"{moves.kind}.claimed")
    return Claim(moves, row[0], Holder(owner, row[2]), until(asked_at), dict(zip(columns, row[3:], strict=True)))


def until(asked_at: float) -> float:
    return trusted_until(asked_at, settings.ADE_LEASE_SECONDS)


def move(
    moves: Moves,
    id: int,
    verb: str,
    *,
    holder: Holder | None = None,
    actor: str = "",
    message: str = "",
    data: Data | None = None,
    guards: Data | None = None,
    where: Q | None = None,
    earlier: Sequence[Told] = (),
    **sets: Any,
) -> bool:
    """Make one move; False when the row is not, or no longer, where it may come from."""
    clock.keep_measured()
    made = moves[verb]
    if (made.by is By.HOLDER) != (holder is not None):
        raise TypeError(
            f"{moves.kind} {verb} is made by {made.by}; {'a' if holder is None else 'no'} holder was expected"
        )
    level = WARNING if sets.get("failure_type") else INFO
    sets = {name: storable(value) if isinstance(value, str) else value for name, value in sets.items()}
    told = Told(made.event, clock.now(), _signed(actor, holder), storable(message), storable(data), level)
    for origin in made.origins:
        must = {"id": id, "status": origin, **_fence(holder), **(guards or {})}
        change = _change(moves, origin, made, must, told, where, sets)
        if _write(replace(change, earlier=earlier) if earlier else change):
            return True
    return False


def finish(claim: Claim, verb: str, *, also: Callable[[], object] | None = None, **options: Any) -> bool:
    """A move by the holder of a claim. When it is refused because the claim is gone, that is recorded.

    What the claim has not told yet and what `also` writes is there exactly if the move is.
    """
    with failpoints.inside(f"{claim.moves.kind}.finish.before_commit"):
        moved = _move_with(also, claim, verb, options)
    failpoints.hit(f"{claim.moves.kind}.finish.after_commit")
    # Its answer may have been lost with the connection.
    return moved or _own_end(claim) == claim.moves[verb].event or refuse_late(claim, verb)


def cancel(moves: Moves, id: int, *, actor: str, reason: str = "") -> str:
    """At once what nobody holds; of what is held, ask the holder. Answers the status that the row has then: cancelled,
    the one in which it is held (the request is accepted and binds), or another one, in which it had ended before.
    """
    failpoints.hit("cancel.read")
    clock.keep_measured()
    actor = actor[:ACTOR_CHARACTERS]
    open_still = {"cancel_requested_at__isnull": True}
    while True:
        if move(moves, id, "cancel", actor=actor, message=reason):
            return moves["cancel"].target
        asked: dict[str, Any] = {"cancel_requested_at": clock.now(), "cancel_requested_by": actor}
        if move(moves, id, "request_cancel", actor=actor, message=reason, guards=open_still, **asked):
            wakeups.ring("cancel")
        status = moves.rows.values_list("status", flat=True).get(pk=id)
        # Recovery may have put it back into the queue between the two.
        if status not in moves["cancel"].origins:
            return str(status)


def refuse_late(claim: Claim, verb: str) -> bool:
    """Always False; records that a write came too late, unless the row is still held and merely said no, or this very
    claim has ended it: the keeper may come by just then.
    """
    row = claim.moves.rows.filter(pk=claim.id).values("status", "lease_owner", "claim_token").first()
    ours = {
        "status": claim.moves.claimed,
        "lease_owner": claim.holder.owner,
        "claim_token": claim.holder.token,
    }
    if row is not None and row != ours:
        claim.lost.set()
        # Once for each verb: a stale worker that writes its log would fill the history.
        if _own_end(claim) or verb in claim.told_late:
            return False
        claim.told_late.add(verb)
        message = f"{verb} came too late: the row is {row['status']} under claim {row['claim_token']}"
        data = {"refused": verb, "token": claim.holder.token, "found": row}
        record(
            claim.moves,
            claim.id,
            LATE_WRITE_REFUSED,
            actor=claim.holder.owner,
            message=message,
            data=data,
            level=WARNING,
        )
    return False


def record(
    moves: Moves,
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
    """Write an event that is no move, and `sets` with it; only for whoever holds the row, when a claim is given."""
    holder = claim.holder if claim else None
    clock.keep_measured()
    told = Told(kind, clock.now(), _signed(actor, holder), storable(message), storable(data), level)
    held = {"status": moves.claimed, **_fence(holder)} if holder else {}
    must = {"id": id, **held, **(guards or {})}
    change = Change(moves.model, moves.kind, must, None, sets, ("last_sequence",), {}, told)
    return _write(change) or (claim is not None and refuse_late(claim, kind))


def record_many(claim: Claim, entries: Sequence[Told]) -> bool:
    """Write a batch of events of whoever holds the row under one update of it."""
    moves = claim.moves
    must = {"id": claim.id, "status": moves.claimed, **_fence(claim.holder)}
    change = Change(moves.model, moves.kind, must, None, {}, (), {}, entries[0])
    return patiently(lambda: _writer().tell_many(change, entries)) or refuse_late(claim, "record")


def record_process(claim: Claim, process: Data) -> bool:
    """Remember the child that does the work, for whoever has to end it should its worker be gone."""
    must = {"id": claim.id, "status": claim.moves.claimed, **_fence(claim.holder)}
    kept = patiently(lambda: _writer().remember(claim.moves.model, must, "process", process))
    return kept or refuse_late(claim, "record_process")


def prune(moves: Moves, ids: Sequence[int], *, where: Q, actor: str, also: Pruning | None = None) -> dict[int, Data]:
    """The history of those of these rows that are as `where` says, but for the event that says so; answers what went.

    The row says the same of itself as before: its last event has its status.
    """
    clock.keep_measured()
    told = Told(moves.pruned, clock.now(), _signed(actor, None))
    return dict(portable.prune(moves.model, moves.kind, ids, where, told, also or (lambda ids: {})))


def renew(owner: str, claims: Iterable[Claim]) -> list[Claim]:
    """Extend all leases of a worker, one update per kind; answers the claims that were not its own any more."""
    failpoints.hit("lease.before_renew")
    return [lost for held in by_kind(claims) for lost in _renew(held[0].moves, owner, held)]


def _renew(moves: Moves, owner: str, held: list[Claim]) -> list[Claim]:
    try:
        return _extend(moves, owner, held)
    except OperationalError as error:
        if len(held) == 1 or not is_contention(error):
            raise
    # Somebody has locked one of the rows: that is not to cost the others.
    return [lost for claim in held for lost in _extend_unless_locked(moves, owner, claim)]


def _extend_unless_locked(moves: Moves, owner: str, claim: Claim) -> list[Claim]:
    try:
        return _extend(moves, owner, [claim])
    except OperationalError as error:
        if not is_contention(error):
            raise
        return []


def _extend(moves: Moves, owner: str, held: list[Claim]) -> list[Claim]:
    asked_at = time.monotonic()
    expires_at = clock.now() + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    # Id and token: a token that moved on is another claim, also when it is this very worker's.
    mine = Q(*[Q(pk=claim.id, claim_token=claim.holder.token) for claim in held], _connector=Q.OR)
    must = {"status": moves.claimed, "lease_owner": owner}
    portable.update(moves.model, must, mine, lease_expires_at=expires_at)
    renewed = moves.rows.filter(mine, **must, lease_expires_at=expires_at)
    kept = set(renewed.values_list("pk", "claim_token"))
    for claim in held:
        if (claim.id, claim.holder.token) in kept:
            claim.trust(until(asked_at))
        else:
            claim.lost.set()
            refuse_late(claim, "renew")
    return [claim for claim in held if (claim.id, claim.holder.token) not in kept]


def _move_with(also: Callable[[], object] | None, claim: Claim, verb: str, options: dict[str, Any]) -> bool:
    untold = claim.untold()
    if also is None:
        return move(claim.moves, claim.id, verb, holder=claim.holder, earlier=untold, **options)
    with transaction.atomic():
        # In the order in which it happened: what was told, what was made of it, the end.
        if untold:
            record_many(claim, untold)
        also()
        moved = move(claim.moves, claim.id, verb, holder=claim.holder, **options)
        if not moved:
            transaction.set_rollback(True)
    return moved


def _change(
    moves: Moves,
    origin: str,
    made: Move,
    must: Data,
    told: Told,
    where: Q | None = None,
    values: Data | None = None,
) -> Change:
    """What a move does to the columns that all kinds have in common follows from where it comes from and goes to."""
    told = Told(told.kind, told.at, told.actor, told.message, told.data, told.level, origin, made.target)
    sets: dict[str, Any] = {"status": made.target}
    grows = ["last_sequence"]
    moments = {}
    if issubclass(moves.model, Work) and origin != made.target:
        active, terminal = moves.model.ACTIVE, moves.model.TERMINAL
        if moves.is_claim(made):
            sets |= {
                "lease_owner": told.actor,
                "lease_expires_at": told.at + timedelta(seconds=settings.ADE_LEASE_SECONDS),
            }
            grows.append("claim_token")
        elif origin == moves.claimed:
            sets |= {"lease_owner": None, "lease_expires_at": None, "process": None}
        if made.target == active:
            moments["started_at"] = "created_at"
        elif made.target in terminal:
            moments["finished_at"] = "started_at"
        elif origin in (active, *terminal):
            sets["started_at"] = None
        if origin in terminal and made.target not in terminal:
            sets["finished_at"] = None
    return Change(moves.model, moves.kind, must, where, {**sets, **(values or {})}, tuple(grows), moments, told)


def _birth(moves: Moves, actor: str, message: str, data: Data | None) -> Told:
    clock.keep_measured()
    return Told(moves.created, clock.now(), _signed(actor, None), message, data, to_status=moves.initial)


def _signed(actor: str, holder: Holder | None) -> str:
    return (actor or (holder.owner if holder else ""))[:ACTOR_CHARACTERS]


def _defaults(moves: Moves, told: Told) -> dict[str, Any]:
    """A full row: the database has no defaults of its own."""
    fields = [f for f in moves.model._meta.concrete_fields if not f.primary_key]
    row = {f.attname: f.get_default() for f in fields}
    at_birth = {"status": moves.initial, "last_sequence": 1, "created_at": told.at}
    return row | {name: value for name, value in at_birth.items() if name in row}


def _write(change: Change) -> bool:
    # Only the ORM can say a Q, or a value that is computed by the database.
    orm = change.where is not None or any(hasattr(v, "resolve_expression") for v in change.sets.values())
    writer = portable if orm else _writer()
    return patiently(lambda: writer.change_one(change)) is not None


def _writer() -> Writer:
    return sql if connection.vendor in sql.FAST_VENDORS else portable


def _fence(holder: Holder | None) -> dict[str, Any]:
    return {"lease_owner": holder.owner, "claim_token": holder.token} if holder else {}


def _own_end(claim: Claim) -> str | None:
    """The event with which this very claim has ended its hold on the row."""
    mine = {"claim_token": claim.holder.token, "actor": claim.holder.owner, "from_status": claim.moves.claimed}
    events = Event.objects.about(claim.moves.kind, claim.id).filter(**mine)
    return events.exclude(to_status=claim.moves.claimed).values_list("kind", flat=True).first()
