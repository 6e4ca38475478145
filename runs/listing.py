"""Lists of runs that cost the same on any page, however many runs there are and whichever of them are wanted.

An index has, for each workspace, configuration, build and document, its runs of each outcome, the newest first. On
PostgreSQL what is wanted of each is asked for by itself, and the first of all of them are a page: its planner would
rather walk along the primary key until it has met enough of those that are wanted, which may be all there are.
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
from documents.models import Document, User, Workspace
from runs.models import BACKWARDS, OUTCOME, Run, RunQuerySet
from work import compiled, statements
from work.compiled import Query

# Ids and times are in the same order but for what was submitted at the same time, or by a clock that was then set.
DISORDER = timedelta(minutes=10)
# Each is asked for by itself, in SQL that is made once; of more, all together.
FEW = 4


@dataclass(frozen=True)
class Wanted:
    """Those of which all that is given is true."""

    workspace_id: int | None = None
    configuration_id: int | None = None
    build_id: int | None = None
    input_document_id: int | None = None
    # None: all.
    outcomes: tuple[str, ...] | None = None
    # From this moment on, and before that one.
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True)
class Piece:
    """So many, behind the id at which the piece before it has ended."""

    most: int
    after: int | None = None
    is_newest_first: bool = True


def runs(user: User, wanted: Wanted, piece: Piece, theirs: Collection[int] | None = None) -> RunQuerySet:
    """Those of the piece, and maybe more; not in order. `theirs` are the workspaces of the user, where the caller has
    them: one question less.
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


# Of each workspace by itself, for no index has the ends of several in their order.
_ENDED = """
    SELECT r.id FROM ({workspaces}) w (id) CROSS JOIN LATERAL (
        SELECT id, finished_at FROM runs WHERE workspace_id = w.id AND finished_at >= %s
        ORDER BY finished_at DESC, id DESC LIMIT %s
    ) r ORDER BY r.finished_at DESC, r.id DESC LIMIT %s"""


def ended(user: User, since: datetime, most: int) -> RunQuerySet:
    """So many of those that ended last, and since then; maybe more, and not in order."""
    if connection.vendor != "postgresql":
        return Run.objects.for_user(user).filter(finished_at__gte=since)
    try:
        workspaces, params = Workspace.objects.for_user(user).order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return Run.objects.none()
    found = statements.rows(_ENDED.format(workspaces=workspaces), [*params, since, most, most])
    return Run.objects.filter(pk__in=[id for (id,) in found])


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
    """For each of these, the first runs of each outcome."""
    if len(owners) > FEW:
        return list(_firsts(shape[0].objects.filter(pk__in=owners), shape, values))
    return [row for id in owners for row in compiled.rows(_of_one(shape), id, *values)]


@cache
def _of_one(shape: Any) -> Query:
    # One and the same function for each shape, for what is compiled is kept under it.
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
    """What the runs belong to, of the narrowest kind, and by which column; nothing when ids are of different ones."""
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
    """Said of ids too: what is older or newer is not looked at then."""
    lookups: dict[str, Any] = {}
    if wanted.created_after is not None:
        lookups["created_at__gte"] = wanted.created_after
        lookups["backwards__lte"] = -_first_since(wanted.created_after - DISORDER)
    if wanted.created_before is not None:
        lookups["created_at__lt"] = wanted.created_before
        lookups["backwards__gte"] = -_first_since(wanted.created_before + DISORDER)
    return lookups


# The first id since a moment, or one behind all, found by halving: there is no index of times.
_HALVES = """
    WITH RECURSIVE halves (low, high) AS (
        SELECT min(id), max(id) + 1 FROM runs
        UNION ALL
        SELECT CASE WHEN r.created_at < %s THEN r.id + 1 ELSE low END,
            CASE WHEN r.created_at < %s THEN high ELSE (low + high) / 2 END
        FROM halves CROSS JOIN LATERAL
            (SELECT id, created_at FROM runs WHERE id >= (low + high) / 2 ORDER BY id LIMIT 1) r
        WHERE low < high
    ) SELECT COALESCE(max(low), 1) FROM halves"""


def _first_since(moment: datetime) -> int:
    ((first,),) = statements.rows(_HALVES, [moment, moment])
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
