"""Performs the writes of the lifecycle in SQL, for databases with RETURNING. Only `work/lifecycle.py` calls it.

On PostgreSQL a change and its event are one statement, and so one round trip. On SQLite they are two statements in an
immediate transaction. docs/kernel-sql.txt has the finished statements. For other databases, and with ADE_PORTABLE_SQL,
the lifecycle uses `work/sql/portable.py`, which has the same effect.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import connection, models, transaction

from work import clock
from work.changes import Change, Claimable, EventDraft, in_order
from work.models import Subject, Work
from work.sql import compiled, statements
from work.sql.bell import CHANNEL
from work.sql.statements import Row, adapt, literal

FAST_VENDORS = frozenset({"postgresql", "sqlite"})
# Further columns that the INSERT of the events needs.
_TIMES = "last_event_at, previous_event_at"
_COMPARISONS = {"": "=", "lte": "<=", "lt": "<", "gte": ">=", "gt": ">"}


class Statement(NamedTuple):
    """The SQL for all changes of one shape. `event_sql` and `earlier` are set if they run as separate statements."""

    sql: str
    event_sql: str = ""
    earlier: str = ""


NOTHING = EventDraft("", datetime.min.replace(tzinfo=UTC))

_statements: dict[Any, Statement] = {}


def change_one(change: Change) -> Row | None:
    """Make a change. Return (id, last_sequence, claim_token) of the row, or None if a guard failed."""
    return _write(change)


def append_events(change: Change, entries: Sequence[EventDraft]) -> bool:
    """Write events of one row that are not transitions. Return False if a guard failed."""
    key = ("append_events", connection.vendor, change.model, _shape(change))
    statement = _statements.get(key) or _statements.setdefault(key, _append_statement(change))
    guarded = [adapt(value) for key, value in change.guards.items() if not _is_constant(key)]
    changed = [adapt(max(event.at for event in entries)), len(entries)]
    if connection.vendor == "postgresql":
        params = [*changed, *guarded, len(entries), *_columns(entries)]
        return statements.one(statement.sql, params) is not None
    with transaction.atomic():
        row = statements.one(statement.sql, [*changed, *guarded])
        if row is not None:
            _insert_earlier(statement.earlier, row, len(entries), entries)
    return row is not None


def set_column(model: type[Subject], guards: Mapping[str, Any], name: str, value: Any) -> bool:
    """Set one column without an event. Return False if a guard failed."""
    key = ("set_column", connection.vendor, model, name, *guards)
    statement = _statements.get(key)
    if statement is None:
        table, where = _table(model), _where(Change(model, "", guards, None, {}, (), {}, NOTHING))
        sql = f"UPDATE {table} SET {_field(model, name).column} = %s WHERE {where} RETURNING {table}.id"
        statement = _statements.setdefault(key, Statement(sql))
    guarded = [adapt(value) for key, value in guards.items() if not _is_constant(key)]
    return statements.one(statement.sql, [adapt(value), *guarded]) is not None


def claim_first(change: Change, claimable: Claimable, columns: tuple[str, ...]) -> Row | None:
    """Change the first row of `claimable`. Return the same values as `change_one`, followed by `columns`."""
    return _write(change, claimable, columns)


def create(
    model: type[Subject],
    subject_kind: str,
    values: Mapping[str, Any],
    varying: Mapping[str, Sequence[Any]],
    event: EventDraft,
    topic: str,
) -> list[int]:
    """Insert one row, or one row per value in the lists of `varying`. Return the ids in order."""
    key = ("create", connection.vendor, model, _event_shape(event), *values, None, *varying)
    statement = _statements.get(key) or _statements.setdefault(
        key, _create_statement(model, subject_kind, tuple(values), tuple(varying), event, topic)
    )
    params = [adapt(value) for value in values.values()]
    if connection.vendor == "postgresql":
        params += [list(column) for column in varying.values()]
        return sorted(id for (id,) in statements.rows(statement.sql, [*params, *_event_params(event)]) if id)
    if varying:
        params.append(json.dumps(list(zip(*varying.values(), strict=True))))
    with transaction.atomic():
        ids = sorted(row[0] for row in statements.rows(statement.sql, params))
        statements.run(statement.event_sql, [*_event_params(event), json.dumps(ids)])
    return ids


def _write(change: Change, claimable: Claimable | None = None, columns: tuple[str, ...] = ()) -> Row | None:
    vendor = connection.vendor
    key = (vendor, change.model, _shape(change), claimable, columns)
    statement = _statements.get(key) or _statements.setdefault(key, _change_statement(change, claimable, columns))
    if vendor == "postgresql":
        earlier = [len(change.earlier) + 1, *_columns(change.earlier)] if change.earlier else []
        params = [*_params(change, claimable), *_event_params(change.event), *earlier]
        return statements.one(statement.sql, params)
    with transaction.atomic():
        # Set the time again now that we have SQLite's write lock. A transaction that waited for the lock comes after
        # the one that had it, so its times must be later too.
        change = change.at(clock.now())
        row = statements.one(statement.sql, _params(change, claimable))
        if row is not None:
            if change.earlier:
                _insert_earlier(statement.earlier, row, len(change.earlier) + 1, change.earlier)
            statements.run(statement.event_sql, [*_event_params(change.event), json.dumps([row[0]])])
    return row


def _params(change: Change, claimable: Claimable | None) -> list[Any]:
    changed = [adapt(value) for name, value in change.sets.items() if name != "status"]
    changed += [adapt(change.latest)] * (len(change.moments) + 1)
    changed += [len(change.earlier)] if change.earlier else []
    guarded = [adapt(value) for key, value in change.guards.items() if not _is_constant(key)]
    if claimable:
        chosen = compiled.sql_and_params(_first(claimable), change.event.at)[1]
        changed = [*chosen, *changed] if connection.vendor == "postgresql" else [*changed, *chosen]
    return [*changed, *guarded]


def _columns(entries: Sequence[EventDraft]) -> list[list[Any]]:
    rows = [(each.at, each.kind, each.level, each.actor, each.message, _data(each)) for each in in_order(entries)]
    return [list(column) for column in zip(*rows, strict=True)]


def _insert_earlier(sql: str, row: Row, number: int, entries: Sequence[EventDraft]) -> None:
    """Write events that are not transitions. The first gets the sequence number `last_sequence - number + 1`."""
    event = in_order(entries)
    rows = [(str(adapt(each.at)), each.kind, each.level, each.actor, each.message, _data(each)) for each in event]
    statements.run(sql, [number, json.dumps(rows), row[0]])


def _data(event: EventDraft) -> str | None:
    return None if event.data is None else json.dumps(event.data)


def _shape(change: Change) -> tuple[Any, ...]:
    """Return everything that determines the SQL of a change, as a key."""
    constants = [(key, value) for key, value in change.guards.items() if _is_constant(key)]
    sets = (change.sets.get("status"), *change.sets)
    event = (*_event_shape(change.event), bool(change.earlier))
    return (*change.guards, *constants, None, *sets, None, *change.grows, *change.moments.items(), event)


def _is_constant(guard: str) -> bool:
    return guard == "status" or guard.endswith("__isnull")


def _event_shape(event: EventDraft) -> tuple[Any, ...]:
    return event.kind, event.from_status, event.to_status, event.level


def _event_params(event: EventDraft) -> list[Any]:
    return [event.actor, event.message, adapt(event.data)]


def _change_statement(change: Change, claimable: Claimable | None, columns: tuple[str, ...]) -> Statement:
    table = _table(change.model)
    where = _where(change)
    before = ""
    if claimable:
        candidate, _ = compiled.sql_and_params(_first(claimable), change.event.at)
        if connection.vendor == "postgresql":
            # Without MATERIALIZED, PostgreSQL may evaluate a subquery with LIMIT more than once and so lock more rows.
            lock = f"FOR NO KEY UPDATE OF {table} SKIP LOCKED"
            before = f"candidate (chosen) AS MATERIALIZED ({candidate} {lock}), "
            candidate = "SELECT chosen FROM candidate"
        where = f"{table}.id = ({candidate}) AND {where}"
    returned = ", ".join([f"{table}.id", f"{table}.last_sequence", f"{_token(change.model)} AS claim_token", *columns])
    sets = [f"status = {literal(change.sets['status'])}"] if "status" in change.sets else []
    sets += [f"{_field(change.model, name).column} = %s" for name in change.sets if name != "status"]
    sets.append(_times(change, is_batch=bool(change.earlier)))
    for name in change.grows:
        more = " + %s" if change.earlier and name == "last_sequence" else ""
        sets.append(f"{name} = {table}.{name} + 1{more}")
    update = f"UPDATE {table} SET {', '.join(sets)} WHERE {where} RETURNING {returned}"
    if connection.vendor == "postgresql":
        event_sql = _event_sql(change.subject_kind, change.event, "moved")
        earlier = f", earlier AS ({_earlier(change)})" if change.earlier else ""
        answer = ", ".join(["id", "last_sequence", "claim_token", *columns])
        return Statement(
            f"WITH {before}moved AS ({update}, {_TIMES}), written AS ({event_sql}){earlier} SELECT {answer} FROM moved"
        )
    return Statement(update, _event_about(change.model, change.subject_kind, change.event), _earlier(change))


def _append_statement(change: Change) -> Statement:
    table = _table(change.model)
    update = (
        f"UPDATE {table} SET {_times(change, is_batch=True)}, last_sequence = {table}.last_sequence + %s"
        f" WHERE {_where(change)} RETURNING {table}.id, {table}.last_sequence, {_token(change.model)} AS claim_token"
    )
    if connection.vendor == "postgresql":
        return Statement(f"WITH moved AS ({update}, {_TIMES}), written AS ({_earlier(change)}) SELECT id FROM moved")
    return Statement(update, earlier=_earlier(change))


def _earlier(change: Change) -> str:
    """Return the INSERT of events that are not transitions. `_insert_earlier` explains its first parameter."""
    numbered = "sequence, claim_token, subject_id, subject_kind, from_status, to_status"
    into = f"INSERT INTO events ({numbered}, at, kind, level, actor, message, data) SELECT"
    kind = literal(change.subject_kind)
    if connection.vendor == "postgresql":
        arrays = "unnest(%s::timestamptz[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[])"
        return (
            f"{into} last_sequence - %s + nth, claim_token, id, {kind}, '', '', GREATEST(at, previous_event_at), kind,"
            " level, actor, message, data::jsonb"
            f" FROM moved, {arrays} WITH ORDINALITY AS v (at, kind, level, actor, message, data, nth)"
        )
    table = _table(change.model)
    at, *values = (f"json_extract(v.value, '$[{n}]')" for n in range(6))
    return (
        f"{into} {table}.last_sequence - %s + v.key + 1, {_token(change.model)}, {table}.id, {kind}, '', '',"
        f" MAX({at}, COALESCE({table}.previous_event_at, '')), {', '.join(values)}"
        f" FROM json_each(%s) AS v, {table} WHERE {table}.id = %s ORDER BY v.key"
    )


def _create_statement(
    model: type[Subject],
    subject_kind: str,
    values: tuple[str, ...],
    varying: tuple[str, ...],
    event: EventDraft,
    topic: str,
) -> Statement:
    """Return the INSERT of rows and of their events. Each `varying` column takes a list with one value per row."""
    fields = [_field(model, name) for name in varying]
    names = ", ".join([*(_field(model, name).column for name in values), *(field.column for field in fields)])
    select = ["%s"] * len(values)
    rows = ""
    if varying and connection.vendor == "postgresql":
        arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
        columns = ", ".join(field.column for field in fields)
        select += [f"v.{field.column}" for field in fields]
        rows = f" FROM unnest({arrays}) WITH ORDINALITY AS v ({columns}, nth) ORDER BY nth"
    elif varying:
        select += [f"json_extract(value, '$[{n}]')" for n in range(len(fields))]
        rows = " FROM json_each(%s) ORDER BY key"
    returned = f"id, last_sequence, {_token(model)} AS claim_token, last_event_at"
    insert = f"INSERT INTO {_table(model)} ({names}) SELECT {', '.join(select)}{rows} RETURNING {returned}"
    if connection.vendor == "postgresql":
        event_sql = _event_sql(subject_kind, event, "made")
        bell = f" UNION ALL SELECT 0 FROM pg_notify('{CHANNEL}', '{topic}')" if topic else ""
        return Statement(f"WITH made AS ({insert}), written AS ({event_sql}) SELECT id FROM made{bell}")
    return Statement(insert, _event_about(model, subject_kind, event))


def _event_about(model: type[Subject], subject_kind: str, event: EventDraft) -> str:
    return _event_sql(
        subject_kind, event, f"{_table(model)} WHERE id IN (SELECT value FROM json_each(%s))", _token(model)
    )


def _event_sql(subject_kind: str, event: EventDraft, source: str, token_of: str = "claim_token") -> str:  # noqa: S107  # a column
    from_to = f"{literal(event.from_status)}, {literal(event.to_status)}"
    return (
        "INSERT INTO events (subject_kind, subject_id, sequence, at, kind, from_status, to_status, claim_token,"
        f" level, actor, message, data) SELECT {literal(subject_kind)}, id, last_sequence, last_event_at,"
        f" {literal(event.kind)}, {from_to}, {token_of}, {event.level}, %s, %s, %s FROM {source}"
    )


def _times(change: Change, *, is_batch: bool) -> str:
    """Return the assignments that write the event's time to the row. No time is earlier than the row's last event.

    The expressions are evaluated while the row is locked, even if the statement had to wait for the lock. They read the
    last event only if an older version of ADE, without these columns, wrote the row last.
    """
    table = _table(change.model)
    last = f"{table}.last_event_at"
    written = (
        f"COALESCE({last}, (SELECT e.at FROM events e WHERE e.subject_kind = {literal(change.subject_kind)}"
        f" AND e.subject_id = {table}.id AND e.sequence = {table}.last_sequence))"
    )
    floors = [f"COALESCE({floor}, created_at)" for floor in change.moments.values()]
    parts = [f"{name} = {_greatest('%s', last, floor)}" for name, floor in zip(change.moments, floors, strict=True)]
    parts += [f"last_event_at = {_greatest('%s', written, *floors)}"]
    parts += [f"previous_event_at = {written}"] if is_batch else []
    return ", ".join(parts)


def _greatest(*moments: str) -> str:
    if connection.vendor == "postgresql":
        return f"GREATEST({', '.join(moments)})"
    # SQLite's MAX returns NULL if any argument is NULL. The empty text sorts before all times.
    return "MAX(" + ", ".join(f"COALESCE({moment}, '')" for moment in moments) + ")"


def _where(change: Change) -> str:
    parts = []
    # COALESCE makes PostgreSQL find the row by its id. With a plain comparison the planner may choose an index on one
    # status instead, because it estimates that index as empty. While an old snapshot is open, PostgreSQL would then
    # read all rows that have ever left this status.
    status = "COALESCE({}, '') = {}" if connection.vendor == "postgresql" else "{} = {}"
    for key, value in change.guards.items():
        name, _, lookup = key.partition("__")
        column = f"{_table(change.model)}.{_field(change.model, name).column}"
        if lookup == "isnull":
            parts.append(f"{column} IS {'NULL' if value else 'NOT NULL'}")
        elif name == "status":
            parts.append(status.format(column, literal(value)))
        else:
            parts.append(f"{column} {_COMPARISONS[lookup]} %s")
    return " AND ".join(parts)


@cache
def _first(claimable: Claimable) -> Claimable:
    # Cached because the function is the key of the compiled SQL: it must be the same object for each queryset.
    return lambda now: claimable(now).values("pk")[:1]


@cache
def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)


def _table(model: type[models.Model]) -> str:
    return model._meta.db_table


def _token(model: type[Subject]) -> str:
    return f"{model._meta.db_table}.claim_token" if issubclass(model, Work) else "0"
