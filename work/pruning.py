"""What is kept for so long and then goes: page by page, each in a transaction of its own, and none of them long.

Whoever dies on the way has lost nothing but the page that it was at; whoever comes after begins with the oldest again.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Model, Q, QuerySet

from work import clock
from work.contention import Contended, is_contention, patiently

# How long a transaction should take at most: who wants the same rows waits for it.
BATCH_SECONDS = 0.1
# Where there are no locks of rows, all who want to write wait, and then have as long themselves.
ALONE_SECONDS = 0.05
FEWEST, FIRST, MOST = 10, 100, 500
# Of what hangs on the rows of one page, a single row may have more.
HEAVIEST = 5000
SHORTEST_REST = 0.02

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Due:
    """What is older than it is kept."""

    rows: int = 0
    oldest: datetime | None = None
    # As old, and stay because something needs them.
    kept: int = 0


@dataclass(frozen=True)
class Batch:
    """What went in one transaction, by table, and how long that took."""

    gone: Mapping[str, int]
    seconds: float = 0.0


@dataclass(frozen=True)
class Policy:
    # The table, as people call it.
    name: str
    # For how long it is kept, in words; "off" for ever.
    keeps: Callable[[], str]
    due: Callable[[], Due]
    # By this actor, one transaction after the other.
    purge: Callable[[str], Iterator[Batch]]


def days_before_now(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


def in_words(days: int | None) -> str:
    return "off" if days is None else f"{days} days"


def due_of(rows: "QuerySet[Any]", kept: "QuerySet[Any]", moment: str) -> Due:
    """Of all `rows`, that are as old, `kept` are those that stay."""
    found = rows.aggregate(rows=Count("pk"), oldest=Min(moment))
    staying = kept.count()
    return Due(found["rows"] - staying, found["oldest"], staying)


def lock(rows: "QuerySet[Any]") -> "QuerySet[Any]":
    """Against whoever refers to them, and without those that somebody holds."""
    return rows.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)


def delete(model: type[Model], ids: Sequence[int]) -> int:
    """In one statement, past what Django collects. The database refuses what something still refers to."""
    if model._meta.label not in settings.PURGE_ALLOWED:
        raise TypeError(f"rows of {model._meta.label} are not deleted: it is not in PURGE_ALLOWED")
    return model._base_manager.filter(pk__in=ids)._raw_delete(connection.alias) if ids else 0


def in_batches(
    rows: "QuerySet[Any]",
    purge: Callable[[list[int]], Mapping[str, int]],
    *,
    moment: str = "",
    weight: str = "",
) -> Iterator[Batch]:
    """The oldest of these first by this moment, which has an index together with the id; without one, by the id alone.

    `purge` is a transaction: it decides again what may go of the rows that it is given.
    """
    size = FIRST
    order = [moment, "pk"] if moment else ["pk"]
    page = rows = rows.order_by(*order).values_list(*order, *([weight] if weight else []))
    while found := _lightest(list(page[:size]), weight):
        ids = [row[len(order) - 1] for row in found]
        began = time.monotonic()
        gone = _unless_contended(purge, ids)
        seconds = time.monotonic() - began
        yield Batch(Counter(gone), seconds)
        size = _next_size(size, seconds)
        _rest(seconds)
        page = rows.filter(_behind(moment, found[-1]))


def _lightest(found: list[tuple[Any, ...]], weight: str) -> list[tuple[Any, ...]]:
    """As many from the beginning as are not too heavy together; one at least."""
    if not weight:
        return found
    sums = accumulate(row[-1] for row in found)
    return found[: max(1, sum(total <= HEAVIEST for total in sums))]


def _behind(moment: str, last: Sequence[Any]) -> Q:
    if not moment:
        return Q(pk__gt=last[0])
    at, id = last[:2]
    # The last part is for the index.
    return (Q(**{f"{moment}__gt": at}) | Q(**{moment: at, "pk__gt": id})) & Q(**{f"{moment}__gte": at})


def _unless_contended(purge: Callable[[list[int]], Mapping[str, int]], ids: list[int]) -> Mapping[str, int]:
    try:
        return patiently(lambda: purge(ids))
    except Exception as error:
        # Somebody is at some of them: there is a next time, and it is not to cost the others.
        if not isinstance(error, Contended) and not is_contention(error):
            raise
        log.info("retention.contended", first=ids[0], last=ids[-1], error=" ".join(str(error).split()))
        return {}


def _next_size(size: int, seconds: float) -> int:
    limit = ALONE_SECONDS if _is_alone() else BATCH_SECONDS
    if seconds > limit:
        return max(FEWEST, size // 2)
    return min(MOST, size * 2) if seconds < limit / 2 else size


def _rest(seconds: float) -> None:
    if _is_alone():
        time.sleep(max(seconds, SHORTEST_REST))


def _is_alone() -> bool:
    """Whether nobody else can write meanwhile."""
    return not connection.features.has_select_for_update
