"""Deletes expired rows in batches, each in a short transaction of its own.

If a process dies, only its current batch is rolled back. The next process starts again with the oldest rows.
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
from work.sql.contention import Contended, is_contention, patiently

# The target duration of a batch's transaction, because other transactions that want the same rows wait for it.
BATCH_SECONDS = 0.1
# The target duration on a database without row locks. There all other writers wait, so each batch is followed by a
# pause of the same length in which they can write.
ALONE_SECONDS = 0.05
FEWEST, FIRST, MOST = 10, 100, 500
# The maximum total weight of a batch, which is its number of dependent rows. A batch of one row may have more.
HEAVIEST = 5000
SHORTEST_REST = 0.02

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Due:
    """Rows that are older than their retention period."""

    rows: int = 0
    oldest: datetime | None = None
    # Rows that are just as old but stay because something needs them.
    kept: int = 0


@dataclass(frozen=True)
class Batch:
    """The result of one transaction: the number of deleted rows per table, and its duration."""

    gone: Mapping[str, int]
    seconds: float = 0.0


@dataclass(frozen=True)
class Policy:
    # The name that messages use for the table.
    name: str
    # Returns the retention period in words, or "off" if rows are kept forever.
    keeps: Callable[[], str]
    due: Callable[[], Due]
    # Given the actor to record, deletes the rows that are due. Each item is one transaction.
    purge: Callable[[str], Iterator[Batch]]


def days_before_now(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


def in_words(days: int | None) -> str:
    return "off" if days is None else f"{days} days"


def due_of(rows: "QuerySet[Any]", kept: "QuerySet[Any]", moment: str) -> Due:
    """Count the expired `rows`. `kept` is the part of them that stays."""
    totals = rows.aggregate(rows=Count("pk"), oldest=Min(moment))
    kept_rows = kept.count()
    return Due(totals["rows"] - kept_rows, totals["oldest"], kept_rows)


def lock(rows: "QuerySet[Any]") -> "QuerySet[Any]":
    """Lock rows so that no new references to them can be made. Skip rows that other transactions have locked."""
    return rows.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)


def delete(model: type[Model], ids: Sequence[int]) -> int:
    """Delete rows in one statement, without Django's collector. The database refuses if other rows refer to them."""
    if model._meta.label not in settings.PURGE_ALLOWED:
        raise TypeError(f"rows of {model._meta.label} are not deleted: it is not in PURGE_ALLOWED")
    return model._base_manager.filter(pk__in=ids)._raw_delete(connection.alias) if ids else 0


def in_batches(
    rows: "QuerySet[Any]", purge: Callable[[list[int]], Mapping[str, int]], *, moment: str = "", weight: str = ""
) -> Iterator[Batch]:
    """Purge the rows, oldest first by `moment`, or by id alone. `moment` needs an index together with the id.

    `purge` runs in a transaction and must check again which of the given rows may be deleted. `weight` names the column
    with a row's number of dependent rows.
    """
    # On SQLite one writer locks out all other writers.
    is_alone = not connection.features.has_select_for_update
    limit = ALONE_SECONDS if is_alone else BATCH_SECONDS
    size = FIRST
    order = [moment, "pk"] if moment else ["pk"]
    page = rows = rows.order_by(*order).values_list(*order, *([weight] if weight else []))
    while batch := list(page[:size]):
        if weight:
            # Keep the first rows whose total weight is within the limit, but at least one row.
            sums = accumulate(row[-1] for row in batch)
            batch = batch[: max(1, sum(total <= HEAVIEST for total in sums))]
        began_at = time.monotonic()
        gone = _purge_unless_contended(purge, [row[len(order) - 1] for row in batch])
        seconds = time.monotonic() - began_at
        yield Batch(Counter(gone), seconds)
        if seconds > limit:
            size = max(FEWEST, size // 2)
        elif seconds < limit / 2:
            size = min(MOST, size * 2)
        if is_alone:
            time.sleep(max(seconds, SHORTEST_REST))
        page = rows.filter(_after(moment, batch[-1]))


def _purge_unless_contended(purge: Callable[[list[int]], Mapping[str, int]], ids: list[int]) -> Mapping[str, int]:
    try:
        return patiently(lambda: purge(ids))
    except Exception as error:
        # Another transaction has locked some of these rows. The next run tries them again, and must not keep the other
        # batches waiting.
        if not isinstance(error, Contended) and not is_contention(error):
            raise
        log.info("retention.contended", first=ids[0], last=ids[-1], error=" ".join(str(error).split()))
        return {}


def _after(moment: str, last: Sequence[Any]) -> Q:
    if not moment:
        return Q(pk__gt=last[0])
    at, id = last[:2]
    # The last condition is redundant, but with it the database can use the index.
    return (Q(**{f"{moment}__gt": at}) | Q(**{moment: at, "pk__gt": id})) & Q(**{f"{moment}__gte": at})
