"""Compares the columns of clusters with their links, for `manage.py cluster check`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import Count, F, Max, Min, Q

from feeds.models import EventCluster


class Problem(NamedTuple):
    cluster_id: int
    what: str
    says: Any
    found: Any


# Columns of a cluster, and the annotations that they must equal.
_EXPECTED = {"article_count": "link_count", "first_at": "oldest", "last_at": "youngest"}
_ARTICLE = "links__raw_article"


def problems() -> Iterator[Problem]:
    # The comparison runs in the database, because most clusters are right.
    annotated = EventCluster.objects.annotate(
        link_count=Count("links"),
        vectors=Count(f"{_ARTICLE}__embedding"),
        oldest=Min(f"{_ARTICLE}__happened_at"),
        youngest=Max(f"{_ARTICLE}__happened_at"),
    )
    is_wrong = (
        ~Q(first_at=F("oldest"))
        | ~Q(last_at=F("youngest"))
        | Q(merged_into__isnull=False)
        | Q(vectors__gt=0, embedding_model="")
        | (Q(vectors=0) & ~Q(embedding_model=""))
    )
    suspects = annotated.filter(~Q(article_count=F("link_count")) | (Q(link_count__gt=0) & is_wrong))
    for cluster in suspects.defer("centroid").order_by("pk").iterator(chunk_size=1000):
        # An empty cluster keeps the times of its former articles.
        expected = _EXPECTED if cluster.link_count else {"article_count": "link_count"}
        for column, annotation in expected.items():
            if getattr(cluster, column) != getattr(cluster, annotation):
                yield Problem(cluster.pk, column, getattr(cluster, column), getattr(cluster, annotation))
        if cluster.link_count and bool(cluster.vectors) != bool(cluster.embedding_model):
            yield Problem(cluster.pk, "centroid", cluster.embedding_model, f"vectors of {cluster.vectors} articles")
        if cluster.link_count and cluster.merged_into_id:
            yield Problem(cluster.pk, "merged_into", cluster.merged_into_id, f"{cluster.link_count} articles")
