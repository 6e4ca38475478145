"""Counts submitted runs by minute and outcome. The database counts a limited number of them."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.db.models import Count, Min, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, TruncMinute

from runs.listing import DISORDER, halves
from runs.models import OUTCOME, Run
from work.sql import statements


class Minute(NamedTuple):
    """The runs of one outcome that were submitted in the same minute, and the time of the first."""

    first: datetime
    outcome: str
    runs: int


_COUNTED = "SELECT min(created_at), now, count(*) FROM ({newest}) submitted GROUP BY {minute}, now"
# On SQLite the text is cut, because Django's own function calls Python for each row.
_MINUTE = {"postgresql": "date_trunc('minute', created_at)", "sqlite": "substr(created_at, 1, 16)"}
# One lookup per workspace and outcome, in the index with this order: see `runs/listing.py`.
_OF_THEIRS = """
    SELECT r.created_at, o.now
    FROM unnest(%s::bigint[]) w (id) CROSS JOIN unnest(%s::text[]) o (now) CROSS JOIN LATERAL (
        SELECT id, created_at FROM runs
        WHERE workspace_id = w.id
            AND CASE WHEN failure_type = 'TIMED_OUT' THEN 'timed_out' ELSE status END = o.now
            AND id * -1 <= -({first}) AND created_at >= %s
        ORDER BY id * -1 LIMIT %s
    ) r ORDER BY r.id DESC LIMIT %s"""


def by_minute(user: AbstractUser, since: datetime, most: int, theirs: Collection[int] | None) -> Sequence[Minute]:
    """Count the newest `most` runs that were submitted since this moment. `theirs` has the ids of the user's
    workspaces; with None, all runs that the user may see are counted.
    """
    newest: Any = Run.objects.for_user(user).filter(created_at__gte=since).annotate(now=OUTCOME).order_by("-pk")
    if connection.vendor not in _MINUTE:
        return _by_orm(newest, most)
    first, params = halves(since - DISORDER)
    if connection.vendor == "postgresql" and theirs is not None:
        sql, params = _OF_THEIRS.format(first=first), [sorted(theirs), [*Run.OUTCOMES], *params, since, most, most]
    else:
        newest = newest.filter(pk__gte=RawSQL(first, params))  # noqa: S611
        sql, params = newest.values("created_at", "now")[:most].query.sql_with_params()
    minutes = []
    for moment, outcome, runs in statements.rows(
        _COUNTED.format(newest=sql, minute=_MINUTE[connection.vendor]), params
    ):
        # SQLite returns text, in UTC.
        is_text = isinstance(moment, str)
        first_at = datetime.fromisoformat(moment).replace(tzinfo=UTC) if is_text else moment
        minutes.append(Minute(first_at, outcome, runs))
    return minutes


def _by_orm(newest: Any, most: int) -> Sequence[Minute]:
    first = Coalesce(Subquery(newest.values("pk")[most - 1 : most]), 0)
    minutes = newest.filter(pk__gte=first).order_by().annotate(minute=TruncMinute("created_at"))
    # Group by plain columns, because SQL Server does not recognise a repeated expression that has parameters.
    counts = minutes.values("minute", "status", "failure_type").annotate(first=Min("created_at"), runs=Count("pk"))
    rows = counts.values_list("first", "status", "failure_type", "runs")
    timed_out = Run.Failure.TIMED_OUT
    return [Minute(first, "timed_out" if why == timed_out else status, runs) for first, status, why, runs in rows]
