"""Reads and writes the links of clusters, and the columns of a cluster that are derived from them.

A cluster must be locked before its links change. Everything here runs in the transaction of the caller, and clusters
are locked in the order of their IDs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Min, QuerySet

from feeds.models import ClusterArticle, EventCluster
from work.sql.contention import Contended

# Rows per statement: SQL Server takes 2,100 parameters.
PIECE = 1000
# A cluster is summarised from at most this many of its latest articles, because some stories never end.
MOST_MEMBERS = 1000
# Digits of a similarity; smaller differences come from how processors round.
DIGITS = 4

T = TypeVar("T")


class Member(NamedTuple):
    link_id: int
    similarity: float
    happened_at: datetime
    url: str
    title: str
    vector: bytes | None
    model: str


def unlink(article_ids: Sequence[int]) -> int:
    """Remove articles from their clusters before they are deleted. Return how many were in a cluster. A cluster may be
    left empty.

    The title and centroid of the cluster, and the similarities of its other articles, stay: articles this old are not
    compared with anything.
    """
    unlinked = 0
    for piece in pieces(article_ids):
        links = ClusterArticle.objects.filter(raw_article__in=piece)
        # While this waits for a lock, another transaction may move an article to a cluster that is not locked yet. So
        # repeat.
        while clusters := lock(links.values_list("cluster", flat=True)):
            unlinked += remove(links.filter(cluster__in=clusters))
            _update_times(clusters)
    return unlinked


def lock(cluster_ids: Iterable[int]) -> list[int]:
    """Lock the clusters that still exist and return their IDs. No other transaction changes their links until this
    one ends.
    """
    locked: list[int] = []
    for piece in pieces(sorted(set(cluster_ids))):
        rows = EventCluster.objects.select_for_update().filter(pk__in=piece).order_by("pk")
        locked += rows.values_list("pk", flat=True)
    return locked


def remove(links: QuerySet[ClusterArticle]) -> int:
    """Delete links of locked clusters. The clusters' counts decrease by the number of rows that were really deleted."""
    cluster_of = dict(links.values_list("pk", "cluster_id"))
    deleted, _ = ClusterArticle.objects.filter(pk__in=cluster_of).delete()
    if deleted != len(cluster_of):
        raise Contended(f"Only {deleted} of {len(cluster_of)} links of locked clusters could be deleted.")
    _count(Counter(cluster_of.values()), -1)
    return deleted


def insert(pairs: Sequence[tuple[int, int]]) -> Counter[int]:
    """Insert (cluster, article) pairs for locked clusters, and increase the clusters' counts. Return how many articles
    were added to each cluster. An article that is already in a cluster is skipped.
    """
    # Sorted, so that two transactions that insert the same articles can't deadlock.
    new = [
        ClusterArticle(cluster_id=cluster, raw_article_id=article)
        for cluster, article in sorted(pairs, key=itemgetter(1))
    ]
    inserted: Counter[int] = Counter()
    for piece in pieces(new):
        rows = piece if _insert(piece) else [link for link in piece if _insert([link])]
        inserted.update(link.cluster_id for link in rows)
    _count(inserted, 1)
    return inserted


def refresh(cluster_ids: Sequence[int]) -> None:
    """Recompute the derived columns of locked clusters. Empty clusters stay as they were."""
    for piece in pieces(cluster_ids):
        large = EventCluster.objects.filter(pk__in=piece, article_count__gt=MOST_MEMBERS).values_list("pk", flat=True)
        for cluster_id in list(large):
            links = ClusterArticle.objects.filter(cluster=cluster_id)
            youngest_first = links.order_by("-raw_article__happened_at", "-raw_article__url")
            members = _members(youngest_first[:MOST_MEMBERS])[cluster_id]
            oldest = links.aggregate(oldest=Min("raw_article__happened_at"))["oldest"]
            _refresh(cluster_id, members, oldest)
        small = ClusterArticle.objects.filter(cluster__in=piece).exclude(cluster__in=large)
        for cluster_id, members in _members(small).items():
            _refresh(cluster_id, members, members[0].happened_at)


def pieces(all: Sequence[T]) -> Iterable[Sequence[T]]:
    for start in range(0, len(all), PIECE):
        yield all[start : start + PIECE]


def _update_times(cluster_ids: Sequence[int]) -> None:
    """Update the times of clusters, and clear centroids without vectors. This doesn't read the articles, because
    there may be many clusters.
    """
    for piece in pieces(cluster_ids):
        links = ClusterArticle.objects.filter(cluster__in=piece).order_by().values("cluster")
        rows = links.annotate(
            first_at=Min("raw_article__happened_at"),
            last_at=Max("raw_article__happened_at"),
            vectors=Count("raw_article__embedding"),
        )
        times = [EventCluster(pk=row["cluster"], first_at=row["first_at"], last_at=row["last_at"]) for row in rows]
        EventCluster.objects.bulk_update(times, ["first_at", "last_at"], batch_size=PIECE // 4)
        without = [row["cluster"] for row in rows if not row["vectors"]]
        EventCluster.objects.filter(pk__in=without).update(centroid=None, embedding_model="")


def _count(numbers: Counter[int], sign: int) -> None:
    """Add these numbers to the clusters' counts. Many clusters change by the same number, so there is one statement per
    distinct number.
    """
    by_number = defaultdict(list)
    for cluster_id, number in numbers.items():
        by_number[number].append(cluster_id)
    for number, cluster_ids in by_number.items():
        for piece in pieces(cluster_ids):
            EventCluster.objects.filter(pk__in=piece).update(article_count=F("article_count") + sign * number)


def _insert(new: Sequence[ClusterArticle]) -> bool:
    """Insert all links or none."""
    try:
        with transaction.atomic():
            ClusterArticle.objects.bulk_create(new)
    except IntegrityError:
        return False
    return True


def _members(links: QuerySet[ClusterArticle]) -> dict[int, list[Member]]:
    """Return the members by cluster, oldest first."""
    columns = ("happened_at", "url", "title", "embedding", "embedding_model")
    members = defaultdict(list)
    for cluster_id, *row in links.values_list(
        "cluster_id", "pk", "similarity", *(f"raw_article__{column}" for column in columns)
    ):
        members[cluster_id].append(Member(*row))
    return {id: sorted(each, key=lambda member: (member.happened_at, member.url)) for id, each in members.items()}


def _refresh(cluster_id: int, members: list[Member], first_at: datetime) -> None:
    # Vectors of different models are never mixed. The model of the youngest article wins.
    model, size = next(((each.model, len(each.vector)) for each in reversed(members) if each.vector), ("", 0))
    compared = [each for each in members if each.vector and (each.model, len(each.vector)) == (model, size)]
    values = {"first_at": first_at, "last_at": members[-1].happened_at}
    if not compared:
        EventCluster.objects.filter(pk=cluster_id).update(
            **values, title=members[0].title, centroid=None, embedding_model=""
        )
        return
    vectors = numpy.frombuffer(b"".join(member.vector or b"" for member in compared), "<f4").reshape(len(compared), -1)
    total = vectors.sum(axis=0, dtype=numpy.float64)
    centroid = numpy.asarray(total / max(float(numpy.linalg.norm(total)), 1e-12), dtype="<f4")
    similarities = [round(float(value), DIGITS) for value in vectors @ centroid]
    changed = [
        ClusterArticle(pk=member.link_id, similarity=similarity)
        for member, similarity in zip(compared, similarities, strict=True)
        if member.similarity != similarity
    ]
    ClusterArticle.objects.bulk_update(changed, ["similarity"], batch_size=PIECE // 4)
    # Among equally central articles, the earliest gives the title.
    central = compared[similarities.index(max(similarities))]
    EventCluster.objects.filter(pk=cluster_id).update(
        **values, title=central.title, centroid=centroid.tobytes(), embedding_model=model
    )
