"""Lists of runs at constant cost per page, whatever the filter and however many runs there are.

For each workspace, configuration, build and document, an index has its runs of each outcome, newest first. On
PostgreSQL each of these is queried separately, and the results are merged into a page. For a single query the planner
would walk the primary key until it has found enough matches, possibly through all rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import OuterRef, QuerySet

from builds.models import Build, Configuration
from documents.models import Document
from runs.models import BACKWARDS, OUTCOME, Run, RunQuerySet
from work.sql import compiled, statements
from work.sql.compiled import Query
from workspaces.models import User, Workspace

# The orders of ids and creation times differ only for concurrent submissions and when a clock is set.
DISORDER = timedelta(minutes=10)
# Up to this many owners are queried one by one with compiled SQL, more in one query.
FEW = 4


@dataclass(frozen=True)
class Wanted:
    """Filters of a list. All that are given must match."""

    workspace_id: int | None = None
    configuration_id: int | None = None
    build_id: int | None = None
    input_document_id: int | None = None
    # None means all.
    outcomes: tuple[str, ...] | None = None
    # From this moment (inclusive) to that one (exclusive).
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True)
class Piece:
    """A page: the number of rows, and the id after which it starts."""

    most: int
    after: int | None = None
    is_newest_first: bool = True


def runs(user: User, wanted: Wanted, piece: Piece, theirs: Collection[int] | None = None) -> RunQuerySet:
    """Return at least the runs of the page, unordered. `theirs` are the ids of the user's workspaces, which saves a
    query.
    """
    if wanted.outcomes == ():
        return Run.objects.none()
    if connection.vendor != "postgresql" or (_sees_all(user) and wanted == _of_time(wanted)):
        return _plain(user, wanted)
    owners, column = _owners(user, wanted)
    lookups = _in_time(wanted)
    if column == "input_document":
        lookups |= _given(configuration_id=wanted.configuration_id, build_id=wanted.build_id)
    if piece.after is not None:
        lookups["backwards__gt" if piece.is_newest_first else "backwards__lt"] = -piece.after
    outcomes = tuple(wanted.outcomes or Run.OUTCOMES)
    shape = (owners.model, column, outcomes, tuple(lookups), piece.most, piece.is_newest_first)
    is_known = theirs is not None and owners.model is Workspace and wanted.workspace_id is None
    asked = sorted(theirs or ()) if is_known else list(owners.order_by().values_list("pk", flat=True))
    found = _rows(asked, shape, list(lookups.values()))
    ids = sorted((id for row in found for ids in row for id in ids), reverse=piece.is_newest_first)
    return Run.objects.filter(pk__in=ids[: piece.most])


# One lookup per workspace, because no index has the end times of several workspaces in order.
_ENDED = """
    SELECT r.id FROM ({workspaces}) w (id) CROSS JOIN LATERAL (
        SELECT id, finished_at FROM runs WHERE workspace_id = w.id AND finished_at >= %s
        ORDER BY finished_at DESC, id DESC LIMIT %s
    ) r ORDER BY r.finished_at DESC, r.id DESC LIMIT %s"""


def ended(user: User, since: datetime, most: int) -> RunQuerySet:
    """Return at least the last `most` runs that ended since then, unordered."""
    if connection.vendor != "postgresql":
        return Run.objects.for_user(user).filter(finished_at__gte=since)
    try:
        workspaces, params = Workspace.objects.for_user(user).order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return Run.objects.none()
    found = statements.rows(_ENDED.format(workspaces=workspaces), [*params, since, most, most])
    return Run.objects.filter(pk__in=[id for (id,) in found])


def failed(user: User, most: int, theirs: Collection[int] | None = None) -> RunQuerySet:
    """Return at least the newest `most` runs that failed or timed out, unordered."""
    if connection.vendor == "postgresql" and not _sees_all(user):
        return runs(user, Wanted(outcomes=("failed", "timed_out")), Piece(most), theirs)
    # The first condition must match the index of failed and cancelled runs exactly.
    found: Any = Run.objects.for_user(user).filter(status__in=["failed", "cancelled"])
    return cast(RunQuerySet, found.filter(status="failed"))


def _plain(user: User, wanted: Wanted) -> RunQuerySet:
    times = _given(created_at__gte=wanted.created_after, created_at__lt=wanted.created_before)
    if connection.vendor == "postgresql":
        bounds = _in_time(wanted)
        names = {"backwards__lte": "pk__gte", "backwards__gte": "pk__lte"}
        times |= {names[name]: -value for name, value in bounds.items() if name in names}
    found: Any = Run.objects.for_user(user).filter(**_columns(wanted), **times)
    if wanted.outcomes is not None:
        found = found.annotate(now=OUTCOME).filter(now__in=wanted.outcomes)
    return cast(RunQuerySet, found)


def _rows(owners: list[int], shape: Any, values: list[Any]) -> Sequence[Sequence[list[int]]]:
    """Return the first runs of each outcome for each owner."""
    if len(owners) > FEW:
        return list(_firsts(shape[0].objects.filter(pk__in=owners), shape, values))
    return [row for id in owners for row in compiled.rows(_of_one(shape), id, *values)]


@cache
def _of_one(shape: Any) -> Query:
    # Always the same function for each shape, because it is the key of the compiled SQL.
    return lambda id, *values: _firsts(shape[0].objects.filter(pk=id), shape, values)


def _firsts(owners: Any, shape: Any, values: Sequence[Any]) -> "QuerySet[Any]":
    _, column, outcomes, lookups, most, is_newest_first = shape
    found: Any = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(**{column: OuterRef("pk")})
    found = found.filter(**dict(zip(lookups, values, strict=True)))
    found = found.order_by("backwards" if is_newest_first else "-backwards")
    arrays = {f"of_{each}": ArraySubquery(found.filter(now=each).values("pk")[:most]) for each in outcomes}
    rows: QuerySet[Any] = owners.order_by().annotate(**arrays).values_list(*arrays)
    return rows


def _owners(user: User, wanted: Wanted) -> "tuple[QuerySet[Any], str]":
    """Return the narrowest owner of the wanted runs as a queryset, and its column. It is empty if the filters
    contradict.
    """
    workspace = _given(workspace=wanted.workspace_id)
    if wanted.input_document_id is not None:
        return Document.objects.for_user(user).filter(pk=wanted.input_document_id, **workspace), "input_document"
    configuration = _given(configuration=wanted.configuration_id, configuration__workspace=wanted.workspace_id)
    if wanted.build_id is not None:
        return Build.objects.for_user(user).filter(pk=wanted.build_id, **configuration), "build"
    if wanted.configuration_id is not None:
        return Configuration.objects.for_user(user).filter(pk=wanted.configuration_id, **workspace), "configuration"
    return Workspace.objects.for_user(user).filter(**_given(pk=wanted.workspace_id)), "workspace"


def _in_time(wanted: Wanted) -> dict[str, Any]:
    """Return the conditions on time, also as bounds on the id, so that older and newer rows are not read."""
    lookups: dict[str, Any] = {}
    if wanted.created_after is not None:
        lookups["created_at__gte"] = wanted.created_after
        lookups["backwards__lte"] = -_first_since(wanted.created_after - DISORDER)
    if wanted.created_before is not None:
        lookups["created_at__lt"] = wanted.created_before
        lookups["backwards__gte"] = -_first_since(wanted.created_before + DISORDER)
    return lookups


# Finds the first id since a moment, or one past the last, by bisection, because creation times have no index.
_HALVES = """
    WITH RECURSIVE halves (low, high) AS (
        SELECT (SELECT min(id) FROM runs), (SELECT max(id) + 1 FROM runs)
        UNION ALL
        SELECT CASE WHEN r.created_at < %s THEN r.id + 1 ELSE low END,
            CASE WHEN r.created_at < %s THEN high ELSE (low + high) / 2 END
        FROM halves {next}
        WHERE low < high
    ) SELECT COALESCE(max(low), 1) FROM halves"""
_NEXT = "(SELECT id{more} FROM runs WHERE id >= (low + high) / 2 ORDER BY id LIMIT 1)"
# SQLite has no LATERAL.
_JOIN = {
    "postgresql": f"CROSS JOIN LATERAL {_NEXT.format(more=', created_at')} r",
    "sqlite": f"JOIN runs r ON r.id = {_NEXT.format(more='')}",
}


def halves(moment: datetime) -> tuple[str, list[Any]]:
    """Return the SQL of the bisection and its parameters."""
    at = statements.adapt(moment)
    return _HALVES.format(next=_JOIN[connection.vendor]), [at, at]


def _first_since(moment: datetime) -> int:
    ((first,),) = statements.rows(*halves(moment))
    return int(first)


def _columns(wanted: Wanted) -> dict[str, Any]:
    names = ("workspace_id", "configuration_id", "build_id", "input_document_id")
    return _given(**{name: getattr(wanted, name) for name in names})


def _of_time(wanted: Wanted) -> Wanted:
    return Wanted(created_after=wanted.created_after, created_before=wanted.created_before)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _sees_all(user: User) -> bool:
    return isinstance(user, AbstractUser) and user.is_active and user.is_superuser
