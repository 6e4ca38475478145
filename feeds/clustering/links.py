"""The links of clusters, and what a cluster says of them. Whoever changes a link has locked its cluster before.

All of it happens in the transaction of the caller, with clusters locked in the order of their ids.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

import numpy
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Min, QuerySet
from numpy.typing import NDArray

from feeds.models import ClusterArticle, EventCluster
from work.contention import Contended

# Named in one statement: SQL Server takes 2,100 parameters.
PIECE = 1000
# What a cluster says of itself is of so many, the latest: some stories never end.
MOST_MEMBERS = 1000
# Of a similarity: what is less is only how a processor rounds.
DIGITS = 4

Vector = NDArray[numpy.float32]
T = TypeVar("T")


class Member(NamedTuple):
    """An article, as its cluster sees it."""

    link_id: int
    similarity: float
    happened_at: datetime
    url: str
    title: str
    vector: bytes | None
    model: str


def unlink(article_ids: Sequence[int]) -> int:
    """Articles leave their clusters, because they go. Answers how many were in one. A cluster may be left empty.

    Its title, its centre and how near others are to it stay as they were: nobody compares what is so old.
    """
    unlinked = 0
    for piece in pieces(article_ids):
        links = ClusterArticle.objects.filter(raw_article__in=piece)
        # Somebody who has moved one meanwhile was waited for, and then it has a cluster that is not locked yet.
        while clusters := lock(links.values_list("cluster", flat=True)):
            unlinked += remove(links.filter(cluster__in=clusters))
            _say_when(clusters)
    return unlinked


def lock(cluster_ids: Iterable[int]) -> list[int]:
    """Those that are still there; nobody else changes their links until the end of the transaction."""
    locked: list[int] = []
    for piece in pieces(sorted(set(cluster_ids))):
        rows = EventCluster.objects.select_for_update().filter(pk__in=piece).order_by("pk")
        locked += rows.values_list("pk", flat=True)
    return locked


def remove(links: QuerySet[ClusterArticle]) -> int:
    """Of locked clusters. Counts go down by what is really deleted."""
    found = dict(links.values_list("pk", "cluster_id"))
    deleted, _ = ClusterArticle.objects.filter(pk__in=found).delete()
    if deleted != len(found):
        raise Contended(f"expected to delete {len(found)} links of clusters that are locked, found {deleted}")
    _count(Counter(found.values()), -1)
    return deleted


def insert(wanted: Sequence[tuple[int, int]]) -> Counter[int]:
    """Articles come into locked clusters, as (cluster, article). Answers how many really have, by cluster: another
    one has a cluster already. Counts go up by that.
    """
    # In one order, so that of two who insert the same none waits for the other in a circle.
    new = [ClusterArticle(cluster_id=cluster, raw_article_id=article) for cluster, article in sorted(wanted, key=_last)]
    inserted: Counter[int] = Counter()
    for piece in pieces(new):
        made = piece if _inserted(piece) else [link for link in piece if _inserted([link])]
        inserted.update(link.cluster_id for link in made)
    _count(inserted, 1)
    return inserted


def refresh(cluster_ids: Sequence[int]) -> None:
    """What locked clusters say of their articles. One that has none left stays as it was."""
    for piece in pieces(cluster_ids):
        large = EventCluster.objects.filter(pk__in=piece, article_count__gt=MOST_MEMBERS).values_list("pk", flat=True)
        for cluster_id in list(large):
            _refresh(cluster_id, _latest(cluster_id), _oldest(cluster_id))
        small = ClusterArticle.objects.filter(cluster__in=piece).exclude(cluster__in=large)
        for cluster_id, members in _members(small).items():
            _refresh(cluster_id, members, members[0].happened_at)


def pieces(all: Sequence[T]) -> Iterable[Sequence[T]]:
    for start in range(0, len(all), PIECE):
        yield all[start : start + PIECE]


def of_length_1(vector: Vector) -> Vector:
    return numpy.asarray(vector / max(float(numpy.linalg.norm(vector)), 1e-12), dtype="<f4")


def _say_when(cluster_ids: Sequence[int]) -> None:
    """What must be true of those that stay, without reading what they are about: there may be many of them."""
    for piece in pieces(cluster_ids):
        links = ClusterArticle.objects.filter(cluster__in=piece).order_by().values("cluster")
        found = links.annotate(
            first_at=Min("raw_article__happened_at"),
            last_at=Max("raw_article__happened_at"),
            vectors=Count("raw_article__embedding"),
        )
        times = [EventCluster(pk=row["cluster"], first_at=row["first_at"], last_at=row["last_at"]) for row in found]
        EventCluster.objects.bulk_update(times, ["first_at", "last_at"], batch_size=PIECE // 4)
        without = [row["cluster"] for row in found if not row["vectors"]]
        EventCluster.objects.filter(pk__in=without).update(centroid=None, embedding_model="")


def _count(numbers: Counter[int], sign: int) -> None:
    """In few statements: many have the same number."""
    by_number = defaultdict(list)
    for cluster_id, number in numbers.items():
        by_number[number].append(cluster_id)
    for number, cluster_ids in by_number.items():
        for piece in pieces(cluster_ids):
            EventCluster.objects.filter(pk__in=piece).update(article_count=F("article_count") + sign * number)


def _inserted(new: Sequence[ClusterArticle]) -> bool:
    """All of them or none."""
    try:
        with transaction.atomic():
            ClusterArticle.objects.bulk_create(new)
    except IntegrityError:
        return False
    return True


def _last(pair: tuple[int, int]) -> int:
    return pair[1]


def _latest(cluster_id: int) -> list[Member]:
    youngest_first = ("-raw_article__happened_at", "-raw_article__url")
    links = ClusterArticle.objects.filter(cluster=cluster_id).order_by(*youngest_first)
    return _members(links[:MOST_MEMBERS])[cluster_id]


def _oldest(cluster_id: int) -> datetime:
    links = ClusterArticle.objects.filter(cluster=cluster_id)
    oldest: datetime = links.aggregate(oldest=Min("raw_article__happened_at"))["oldest"]
    return oldest


def _members(links: QuerySet[ClusterArticle]) -> dict[int, list[Member]]:
    """By cluster, the oldest first."""
    columns = ("happened_at", "url", "title", "embedding", "embedding_model")
    members = defaultdict(list)
    for cluster_id, *row in links.values_list(
        "cluster_id", "pk", "similarity", *(f"raw_article__{column}" for column in columns)
    ):
        members[cluster_id].append(Member(*row))
    return {id: sorted(each, key=lambda member: (member.happened_at, member.url)) for id, each in members.items()}


def _refresh(cluster_id: int, members: list[Member], first_at: datetime) -> None:
    # Of two models, that of the youngest article: they are never mixed.
    model, size = next(((each.model, len(each.vector)) for each in reversed(members) if each.vector), ("", 0))
    compared = [each for each in members if each.vector and (each.model, len(each.vector)) == (model, size)]
    values = {"first_at": first_at, "last_at": members[-1].happened_at}
    if not compared:
        EventCluster.objects.filter(pk=cluster_id).update(
            **values, title=members[0].title, centroid=None, embedding_model=""
        )
        return
    vectors = numpy.frombuffer(b"".join(member.vector or b"" for member in compared), "<f4").reshape(len(compared), -1)
    centroid = of_length_1(vectors.sum(axis=0, dtype=numpy.float64))
    similarities = [round(float(value), DIGITS) for value in vectors @ centroid]
    _write_similarities(compared, similarities)
    # Of several that are as near, the first to tell.
    central = compared[similarities.index(max(similarities))]
    EventCluster.objects.filter(pk=cluster_id).update(
        **values, title=central.title, centroid=centroid.tobytes(), embedding_model=model
    )


def _write_similarities(members: list[Member], similarities: list[float]) -> None:
    changed = [
        ClusterArticle(pk=member.link_id, similarity=similarity)
        for member, similarity in zip(members, similarities, strict=True)
        if member.similarity != similarity
    ]
    ClusterArticle.objects.bulk_update(changed, ["similarity"], batch_size=PIECE // 4)
