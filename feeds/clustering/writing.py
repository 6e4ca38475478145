"""Writes planned changes to the database. Each transaction leaves the clusters consistent, because the worker may stop
after any of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from django.db import IntegrityError, transaction

from feeds.clustering import links
from feeds.clustering.plan import Change
from feeds.models import BriefItem, ClusterArticle, EventCluster
from work import failpoints
from work.sql.contention import patiently

# Most clusters, and most added articles, in one transaction. Such a transaction takes a tenth of a second, and blocks
# other writers on SQLite. More articles for one cluster are added by further transactions.
AT_ONCE = 50
MOST_COMING = 1000


class Conflict(Exception):
    """Another transaction has changed the rows that were read. Transactions that were committed before this stay."""

    def __init__(self, message: str, written: int = 0) -> None:
        super().__init__(message)
        self.written = written


# For each cluster: how many of its articles went into which other cluster.
Moves = dict[int, Counter[int]]


class Part(NamedTuple):
    """As much of a change as fits into one transaction."""

    # The index of the change.
    place: int
    change: Change


class Result(NamedTuple):
    rows: int
    moves: Moves
    # The clusters of these parts, in the order of the parts.
    cluster_ids: list[int]


def write(changes: Sequence[Change], go_on: Callable[[], None]) -> int:
    """Apply the changes and return how many articles were added to a cluster. Raises Conflict."""
    moves: Moves = {}
    new_clusters: dict[int, int] = {}
    rows = 0
    for parts in _transactions(changes):
        go_on()
        # The first part of a change has created its cluster.
        some = [replace(change, cluster_id=new_clusters.get(place, change.cluster_id)) for place, change in parts]
        try:
            result = patiently(partial(_write, some, moves))
        except (IntegrityError, Conflict) as error:
            # IntegrityError is raised at the commit if an article was purged in the meantime.
            raise Conflict(str(error), rows) from error
        rows, moves = rows + result.rows, result.moves
        new_clusters = {part.place: id for part, id in zip(parts, result.cluster_ids, strict=True)}
        if result.rows != (planned := sum(len(change.coming) for change in some)):
            message = f"Another transaction put {planned - result.rows} of {planned} articles into other clusters."
            raise Conflict(message, rows)
    return rows


def _transactions(changes: Sequence[Change]) -> Iterable[list[Part]]:
    """Split the changes into transactions. The parts of one change go into consecutive transactions, never into the
    same one.
    """
    parts: list[Part] = []
    room = MOST_COMING
    for place, change in enumerate(changes):
        coming, pieces = change.coming, [change]
        if len(coming) > MOST_COMING:
            starts = range(0, len(coming), MOST_COMING)
            pieces = [replace(change, articles=tuple(coming[start : start + MOST_COMING])) for start in starts]
        for piece in pieces:
            number = len(piece.coming)
            if parts and (len(parts) == AT_ONCE or number > room):
                yield parts
                parts, room = [], MOST_COMING
            parts.append(Part(place, piece))
            room -= number
    if parts:
        yield parts


def _write(changes: Sequence[Change], before: Moves) -> Result:
    with failpoints.inside("clustering.linked"), transaction.atomic():
        sources = {id for change in changes for article in change.moving if (id := article.cluster_id) is not None}
        targets = {change.cluster_id for change in changes if change.cluster_id is not None}
        locked = set(links.lock(sources | targets))
        # A cluster that is empty and only points to the cluster that took its articles. Articles added to it would
        # never get into a brief.
        merged = EventCluster.objects.filter(pk__in=targets & locked, merged_into__isnull=False, article_count=0)
        if gone := (targets - locked) | set(merged.values_list("pk", flat=True)):
            raise Conflict(f"Cluster {min(gone)} was deleted or merged meanwhile.")
        moving = [article.id for change in changes for article in change.moving]
        for piece in links.pieces(moving):
            links.remove(ClusterArticle.objects.filter(raw_article__in=piece, cluster__in=sources & locked))
        placed = []
        for change in changes:
            times = {"first_at": change.articles[0].happened_at, "last_at": change.articles[-1].happened_at}
            # A new cluster has no title until its articles are linked.
            placed.append((change.cluster_id or EventCluster.objects.create(**times).pk, change))
        inserted = links.insert([(id, article.id) for id, change in placed for article in change.coming])
        moves = defaultdict(Counter, {id: Counter(into) for id, into in before.items()})
        for id, change in placed:
            for article in change.moving:
                moves[article.cluster_id or 0][id] += 1
        links.refresh(sorted(locked | inserted.keys()))
        _end_empty({*sources & locked, *(id for id, _ in placed)} - targets, moves)
    return Result(inserted.total(), moves, [id for id, _ in placed])


def _end_empty(cluster_ids: Iterable[int], moves: Moves) -> None:
    """Delete clusters that are empty now. One that a brief or another cluster refers to is kept and points to the
    cluster that took most of its articles.
    """
    empty = EventCluster.objects.filter(pk__in=cluster_ids, links=None)
    kept = set(BriefItem.objects.filter(cluster__in=empty).values_list("cluster", flat=True))
    kept |= set(empty.filter(merged__isnull=False).values_list("pk", flat=True))
    for cluster_id in empty.values_list("pk", flat=True):
        if cluster_id not in kept:
            EventCluster.objects.filter(pk=cluster_id).delete()
        elif into := moves.get(cluster_id):
            most = min(into, key=lambda id: (-into[id], id))
            EventCluster.objects.filter(pk=cluster_id).update(merged_into=most)
