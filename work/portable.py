"""The writes of the lifecycle through the ORM, for any database. `work/lifecycle.py` is the only caller."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Greatest

from work.changes import Change, Claimable, Pruning, Told
from work.models import Event, Subject


def change_one(change: Change) -> Sequence[Any] | None:
    """Answers (id, last_sequence, claim_token) of the changed row, None when the guards did not hold."""
    with transaction.atomic():
        if not update(change.model, change.guards, change.where or Q(), **_sets(change)):
            return None
        return _tell(change, change.guards["id"])


def remember(model: type[Subject], guards: Mapping[str, Any], name: str, value: Any) -> bool:
    """Set one column, without an event; False when the guards did not hold."""
    return bool(update(model, guards, **{name: value}))


def tell_many(change: Change, entries: Sequence[Told]) -> bool:
    """Events that are no moves, all of one row; False when the guards did not hold."""
    with transaction.atomic():
        if not update(change.model, change.guards, last_sequence=F("last_sequence") + len(entries)):
            return False
        last = change.model._base_manager.values_list("last_sequence", flat=True).get(pk=change.guards["id"])
        _tell_all(change, change.guards["id"], last - len(entries) + 1, change.guards["claim_token"], entries)
    return True


def claim_first(change: Change, claimable: Claimable, columns: tuple[str, ...]) -> Sequence[Any] | None:
    """The same for the first row of `claimable`, with `columns` behind the three."""
    with transaction.atomic():
        id = _locked(claimable(change.told.at)).values_list("pk", flat=True).first()
        if id is None or not update(change.model, {**change.guards, "id": id}, **_sets(change)):
            return None
        return _tell(change, id, columns)


def create(
    model: type[Subject],
    subject_kind: str,
    values: Mapping[str, Any],
    varying: Mapping[str, Sequence[Any]],
    told: Told,
    topic: str,
) -> list[int]:
    """Insert one row, or as many as `varying` has values for each of its columns; answers their ids in that order."""
    each = zip(*varying.values(), strict=True) if varying else [()]
    ids = []
    with transaction.atomic():
        for row in each:
            # One by one: not every database answers a bulk insert with its ids.
            made = model(**values, **dict(zip(varying, row, strict=True)))
            made.save(force_insert=True)
            ids.append(made.pk)
        token = values.get("claim_token", 0)
        Event.objects.bulk_create(event(subject_kind, id, 1, token, told) for id in ids)
    return ids


def prune(
    model: type[Subject], subject_kind: str, ids: Sequence[int], where: Q, told: Told, also: Pruning
) -> dict[int, dict[str, Any]]:
    """One event in the place of all others of these rows; answers what went of each."""
    with transaction.atomic():
        rows = _locked(models.QuerySet(model).filter(where, pk__in=ids, pruned_at__isnull=True).order_by("pk"))
        held = list(rows.values_list("pk", "status", "last_sequence", "claim_token"))
        ids = [id for id, *_ in held]
        more = also(ids)
        gone = {id: {"events": last, **more.get(id, {})} for id, _, last, _ in held}
        update(model, {"pk__in": ids}, pruned_at=told.at, last_sequence=F("last_sequence") + 1)
        Event.objects.filter(subject_kind=subject_kind, subject_id__in=ids).delete()
        Event.objects.bulk_create(
            event(subject_kind, id, last + 1, token, replace(told, to_status=status, data=gone[id]))
            for id, status, last, token in held
        )
    return gone


def update(model: type[Subject], guards: Mapping[str, Any], where: Q | None = None, **sets: Any) -> int:
    # Past SubjectQuerySet.update, which refuses these columns to everybody else.
    return models.QuerySet(model).filter(where or Q(), **guards).update(**sets)


def event(subject_kind: str, id: int, sequence: int, token: int, told: Told) -> Event:
    return Event(
        subject_kind=subject_kind,
        subject_id=id,
        sequence=sequence,
        claim_token=token,
        at=told.at,
        kind=told.kind,
        from_status=told.from_status,
        to_status=told.to_status,
        actor=told.actor,
        message=told.message,
        data=told.data,
        level=told.level,
    )


def _locked(queryset: "models.QuerySet[Any]") -> "models.QuerySet[Any]":
    features = connection.features
    if not features.has_select_for_update_skip_locked:
        return queryset
    # of: a join to a row that is locked by somebody else must not hide this one.
    of = ("self",) if features.has_select_for_update_of else ()
    return queryset.select_for_update(skip_locked=True, of=of, no_key=features.has_select_for_no_key_update)


def _sets(change: Change) -> dict[str, Any]:
    at = models.Value(change.told.at, output_field=models.DateTimeField())
    moments = {name: Greatest(at, Coalesce(F(floor), F("created_at"))) for name, floor in change.moments.items()}
    grown = {name: F(name) + 1 for name in change.grows}
    if change.earlier:
        grown["last_sequence"] = F("last_sequence") + 1 + len(change.earlier)
    return {**change.sets, **grown, **moments}


def _tell_all(change: Change, id: int, first: int, token: int, entries: Sequence[Told]) -> None:
    numbered = enumerate(entries, first)
    Event.objects.bulk_create(event(change.subject_kind, id, number, token, told) for number, told in numbered)


def _tell(change: Change, id: int, columns: tuple[str, ...] = ()) -> Sequence[Any]:
    has_token = any(f.name == "claim_token" for f in change.model._meta.fields)
    token = ["claim_token"] if has_token else []
    row = change.model._base_manager.values_list("pk", "last_sequence", *token, *columns).get(pk=id)
    row = row if has_token else (*row[:2], 0, *row[2:])
    if change.earlier:
        _tell_all(change, id, row[1] - len(change.earlier), row[2], change.earlier)
    event(change.subject_kind, id, row[1], row[2], change.told).save()
    return row
