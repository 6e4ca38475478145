"""Lists runs at a constant cost per page, whatever the filter and however many runs there are.

Indexes have the runs of each workspace, configuration, build and document by outcome, newest first. On PostgreSQL each
outcome is queried separately, and the results are merged into a page. For a single query, the planner would walk the
primary key until it had found enough matches, possibly through all rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, cast

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, OuterRef, QuerySet

from builds.models import Build, Configuration
from documents.models import Document
from runs.models import BACKWARDS, OUTCOME, Run, RunQuerySet
from work.sql import compiled, statements
from work.sql.compiled import Query
from workspaces.models import User, Workspace

# How far creation times may be out of the order of ids, because of concurrent submissions or a clock that was set.
DISORDER = timedelta(minutes=10)
# Up to this many owners are queried one by one with compiled SQL; more are queried together.
FEW = 4


@dataclass(frozen=True)
class RunFilter:
    """Filters of a list. A run must match all that are given."""

    workspace_id: int | None = None
    configuration_id: int | None = None
    build_id: int | None = None
    input_document_id: int | None = None
    # None means all.
    outcomes: tuple[str, ...] | None = None
    # The first bound is inclusive, the second exclusive.
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True)
class PageRequest:
    """A page of a list: at most `most` rows, starting after the id `after`."""

    most: int
    after: int | None = None
    is_newest_first: bool = True


class _Shape(NamedTuple):
    """Everything that the SQL of a page depends on. Its parameters are the owner's id and the values of the lookups."""

    owner: type[Model]
    column: str
    outcomes: tuple[str, ...]
    lookups: tuple[str, ...]
    most: int
    is_newest_first: bool


def runs(user: User, wanted: RunFilter, piece: PageRequest, theirs: Collection[int] | None = None) -> RunQuerySet:
    """Return at least the runs of the page, unordered. Pass the ids of the user's workspaces as `theirs` to save a
    query.
    """
    if wanted.outcomes == ():
        return Run.objects.none()
    times = RunFilter(created_after=wanted.created_after, created_before=wanted.created_before)
    if connection.vendor != "postgresql" or (_sees_all(user) and wanted == times):
        return _by_orm(user, wanted)
    owners, column = _owners(user, wanted)
    lookups = _in_time(wanted)
    if column == "input_document":
        lookups |= _given(configuration_id=wanted.configuration_id, build_id=wanted.build_id)
    if piece.after is not None:
        lookups["backwards__gt" if piece.is_newest_first else "backwards__lt"] = -piece.after
    outcomes = tuple(wanted.outcomes or Run.OUTCOMES)
    shape = _Shape(owners.model, column, outcomes, tuple(lookups), piece.most, piece.is_newest_first)
    values = list(lookups.values())
    is_known = theirs is not None and owners.model is Workspace and wanted.workspace_id is None
    owner_ids = sorted(theirs or ()) if is_known else list(owners.order_by().values_list("pk", flat=True))
    # Each row is for one owner, and has the ids of the first runs of each outcome.
    if len(owner_ids) > FEW:
        rows = list(_firsts(shape, owners.model._base_manager.filter(pk__in=owner_ids), values))
    else:
        rows = [row for id in owner_ids for row in compiled.rows(_of_one(shape), id, *values)]
    ids = sorted((id for row in rows for ids in row for id in ids), reverse=piece.is_newest_first)
    return Run.objects.filter(pk__in=ids[: piece.most])


# One lookup per workspace, because no index orders end times across workspaces.
_ENDED = """
    SELECT r.id FROM ({workspaces}) w (id) CROSS JOIN LATERAL (
        SELECT id, finished_at FROM runs WHERE workspace_id = w.id AND finished_at >= %s
        ORDER BY finished_at DESC, id DESC LIMIT %s
    ) r ORDER BY r.finished_at DESC, r.id DESC LIMIT %s"""


def recently_ended(user: User, since: datetime, most: int) -> RunQuerySet:
    """Return at least the last `most` runs that ended since this moment, unordered."""
    if connection.vendor != "postgresql":
        return Run.objects.for_user(user).filter(finished_at__gte=since)
    try:
        workspaces, params = Workspace.objects.for_user(user).order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return Run.objects.none()
    rows = statements.rows(_ENDED.format(workspaces=workspaces), [*params, since, most, most])
    return Run.objects.filter(pk__in=[id for (id,) in rows])


def recent_failures(user: User, most: int, theirs: Collection[int] | None = None) -> RunQuerySet:
    """Return at least the newest `most` runs that failed or timed out, unordered."""
    if connection.vendor == "postgresql" and not _sees_all(user):
        return runs(user, RunFilter(outcomes=("failed", "timed_out")), PageRequest(most), theirs)
    # The first condition must match the index of failed and cancelled runs exactly.
    rows: Any = Run.objects.for_user(user).filter(status__in=[Run.Status.FAILED, Run.Status.CANCELLED])
    return cast(RunQuerySet, rows.filter(status=Run.Status.FAILED))


def _by_orm(user: User, wanted: RunFilter) -> RunQuerySet:
    names = ("workspace_id", "configuration_id", "build_id", "input_document_id")
    conditions = _given(**{name: getattr(wanted, name) for name in names})
    conditions |= _given(created_at__gte=wanted.created_after, created_at__lt=wanted.created_before)
    if connection.vendor == "postgresql":
        bounds = {"backwards__lte": "pk__gte", "backwards__gte": "pk__lte"}
        conditions |= {bounds[name]: -value for name, value in _in_time(wanted).items() if name in bounds}
    rows: Any = Run.objects.for_user(user).filter(**conditions)
    if wanted.outcomes is not None:
        rows = rows.annotate(now=OUTCOME).filter(now__in=wanted.outcomes)
    return cast(RunQuerySet, rows)


@cache
def _of_one(shape: _Shape) -> Query:
    # The cache returns the same function for each shape, because the function is the key of its compiled SQL.
    return lambda id, *values: _firsts(shape, shape.owner._base_manager.filter(pk=id), values)


def _firsts(shape: _Shape, owners: Any, values: Sequence[Any]) -> "QuerySet[Any]":
    runs: Any = Run.objects.annotate(now=OUTCOME, backwards=BACKWARDS).filter(**{shape.column: OuterRef("pk")})
    runs = runs.filter(**dict(zip(shape.lookups, values, strict=True)))
    runs = runs.order_by("backwards" if shape.is_newest_first else "-backwards")
    arrays = {f"of_{each}": ArraySubquery(runs.filter(now=each).values("pk")[: shape.most]) for each in shape.outcomes}
    rows: QuerySet[Any] = owners.order_by().annotate(**arrays).values_list(*arrays)
    return rows


def _owners(user: User, wanted: RunFilter) -> "tuple[QuerySet[Any], str]":
    """Return the narrowest owners of the wanted runs and the column of the runs that refers to them. The queryset is
    empty if the filters contradict each other.
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


def _in_time(wanted: RunFilter) -> dict[str, Any]:
    """Return the conditions on the creation time, and matching bounds on the id, so that older and newer rows are not
    read.
    """
    lookups: dict[str, Any] = {}
    if wanted.created_after is not None:
        lookups["created_at__gte"] = wanted.created_after
        lookups["backwards__lte"] = -_first_since(wanted.created_after - DISORDER)
    if wanted.created_before is not None:
        lookups["created_at__lt"] = wanted.created_before
        lookups["backwards__gte"] = -_first_since(wanted.created_before + DISORDER)
    return lookups


# Finds the first id since a moment, or one past the last id. It uses bisection, because creation times have no index.
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


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _sees_all(user: User) -> bool:
    return isinstance(user, AbstractUser) and user.is_active and user.is_superuser
