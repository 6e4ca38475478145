"""Performs the writes of the lifecycle with the ORM, for any database: on SQL Server, with ADE_PORTABLE_SQL, and for
conditions that need the ORM. Only `work/lifecycle.py` calls this module.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Greatest

from work import clock
from work.changes import Change, Claimable, EventDraft, Pruning, in_order
from work.models import Event, Subject
from work.sql import bell, compiled, guards


def change_one(change: Change) -> Sequence[Any] | None:
    """Make a change. Return (id, last_sequence, claim_token) of the row, or None if a guard failed."""
    with transaction.atomic():
        change = _when_locked(change)
        if not update(change.model, change.guards, change.where or Q(), **_sets(change)):
            return None
        return _insert_event(change, change.guards["id"])


def set_column(model: type[Subject], guards: Mapping[str, Any], name: str, value: Any) -> bool:
    """Set one column without an event. Return False if a guard failed."""
    return bool(update(model, guards, **{name: value}))


def append_events(change: Change, entries: Sequence[EventDraft]) -> bool:
    """Write events of one row that are not transitions. Return False if a guard failed."""
    with transaction.atomic():
        number = F("last_sequence") + len(entries)
        times = _times(change, max(event.at for event in entries), is_batch=True)
        if not update(change.model, change.guards, last_sequence=number, **times):
            return False
        row = change.model._base_manager.values_list("last_sequence", "previous_event_at").get(pk=change.guards["id"])
        first, token = row[0] - len(entries) + 1, change.guards["claim_token"]
        _insert_events(change, change.guards["id"], first, token, in_order(entries, row[1]))
    return True


def claim_first(change: Change, claimable: Claimable, columns: tuple[str, ...]) -> Sequence[Any] | None:
    """Change the first row of `claimable`. Return the same values as `change_one`, followed by `columns`."""
    with transaction.atomic():
        change = _when_locked(change)
        # Not with the parameters of the ORM: SQL Server uses an index with a condition only for a literal.
        for (id,) in compiled.rows(_first(claimable), change.event.at):
            if update(change.model, {**change.guards, "id": id}, **_sets(change)):
                return _insert_event(change, id, columns)
    return None


def create(
    model: type[Subject],
    subject_kind: str,
    values: Mapping[str, Any],
    varying: Mapping[str, Sequence[Any]],
    event: EventDraft,
    topic: str,
) -> list[int]:
    """Insert one row, or one row per value in the lists of `varying`. Return the ids in order."""
    ids = []
    with transaction.atomic():
        for varied in zip(*varying.values(), strict=True) if varying else [()]:
            # Insert rows one by one, because not every database returns the ids of a bulk insert.
            row = model(**values, **dict(zip(varying, varied, strict=True)))
            row.save(force_insert=True)
            ids.append(row.pk)
        token = values.get("claim_token", 0)
        Event.objects.bulk_create(event_row(subject_kind, id, 1, token, event) for id in ids)
        bell.ring(topic)
    return ids


def prune(
    model: type[Subject], subject_kind: str, ids: Sequence[int], where: Q, event: EventDraft, also: Pruning
) -> dict[int, dict[str, Any]]:
    """Replace all events of each of these rows with one event. Return id -> what was deleted."""
    with transaction.atomic():
        rows = _locked(models.QuerySet(model).filter(where, pk__in=ids, pruned_at__isnull=True).order_by("pk"))
        held = list(rows.values_list("pk", "status", "last_sequence", "claim_token", "last_event_at"))
        ids = [id for id, *_ in held]
        more = also(ids)
        data = {id: {"events": last, **more.get(id, {})} for id, _, last, *_ in held}
        at = Greatest(_moment(event.at), Coalesce(F("last_event_at"), _moment(event.at)))
        update(model, {"pk__in": ids}, pruned_at=at, last_event_at=at, last_sequence=F("last_sequence") + 1)
        with guards.retention():
            Event.objects.filter(subject_kind=subject_kind, subject_id__in=ids).delete()
        Event.objects.bulk_create(
            event_row(
                subject_kind, id, last + 1, token, replace(event.not_before(last_at), to_status=status, data=data[id])
            )
            for id, status, last, token, last_at in held
        )
    return data


def update(model: type[Subject], guards: Mapping[str, Any], where: Q | None = None, **sets: Any) -> int:
    # Bypass SubjectQuerySet.update, which refuses to write the protected columns.
    return models.QuerySet(model).filter(where or Q(), **guards).update(**sets)


def event_row(subject_kind: str, id: int, sequence: int, token: int, event: EventDraft) -> Event:
    return Event(
        subject_kind=subject_kind,
        subject_id=id,
        sequence=sequence,
        claim_token=token,
        at=event.at,
        kind=event.kind,
        from_status=event.from_status,
        to_status=event.to_status,
        actor=event.actor,
        message=event.message,
        data=event.data,
        level=event.level,
    )


def _when_locked(change: Change) -> Change:
    """On SQLite, set the change's time again now that we have the write lock. A transaction that waited for the lock
    comes after the one that had it, so its times must be later too.
    """
    return change.at(clock.now()) if connection.vendor == "sqlite" else change


@cache
def _first(claimable: Claimable) -> Claimable:
    # Cached because the function is the key of the compiled SQL: it must be the same object for each queryset.
    return lambda now: _locked(claimable(now)).values("pk")[:1]


def _locked(queryset: "models.QuerySet[Any]") -> "models.QuerySet[Any]":
    features = connection.features
    if not features.has_select_for_update_skip_locked:
        return queryset
    # `of` locks only this table. Otherwise a row would be skipped if a row joined to it is locked elsewhere.
    of = ("self",) if features.has_select_for_update_of else ()
    return queryset.select_for_update(skip_locked=True, of=of, no_key=features.has_select_for_no_key_update)


def _sets(change: Change) -> dict[str, Any]:
    times = _times(change, change.latest, is_batch=bool(change.earlier))
    grown = {name: F(name) + 1 for name in change.grows}
    if change.earlier:
        grown["last_sequence"] = F("last_sequence") + 1 + len(change.earlier)
    return {**change.sets, **grown, **times}


def _times(change: Change, latest: datetime, *, is_batch: bool) -> dict[str, Any]:
    """Return the assignments that write the event's time to the row. No time is earlier than the row's last event."""
    at, last = _moment(latest), F("last_event_at")
    floors = {name: Coalesce(F(floor), F("created_at")) for name, floor in change.moments.items()}
    moments = {name: Greatest(at, Coalesce(last, at), floor) for name, floor in floors.items()}
    # If an older version of ADE, without these columns, wrote the row last, read the time from its last event.
    number = {"subject_id": models.OuterRef("pk"), "sequence": models.OuterRef("last_sequence")}
    written = models.Subquery(Event.objects.filter(subject_kind=change.subject_kind, **number).values("at"))
    times = {**moments, "last_event_at": Greatest(at, Coalesce(last, written, at), *floors.values())}
    return {**times, "previous_event_at": Coalesce(last, written)} if is_batch else times


def _moment(at: datetime) -> models.Value:
    return models.Value(at, output_field=models.DateTimeField())


def _insert_events(change: Change, id: int, first: int, token: int, entries: Iterable[EventDraft]) -> None:
    numbered = enumerate(entries, first)
    Event.objects.bulk_create(event_row(change.subject_kind, id, number, token, event) for number, event in numbered)


def _insert_event(change: Change, id: int, columns: tuple[str, ...] = ()) -> Sequence[Any]:
    has_token = any(f.name == "claim_token" for f in change.model._meta.fields)
    token = ["claim_token"] if has_token else []
    names = ["last_event_at", "previous_event_at", "pk", "last_sequence", *token, *columns]
    last_at, previous_at, *row = change.model._base_manager.values_list(*names).get(pk=id)
    row = row if has_token else [*row[:2], 0, *row[2:]]
    if change.earlier:
        _insert_events(change, id, row[1] - len(change.earlier), row[2], in_order(change.earlier, previous_at))
    event_row(change.subject_kind, id, row[1], row[2], replace(change.event, at=last_at)).save()
    return row
