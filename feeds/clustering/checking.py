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
_SAID = {"article_count": "links_found", "first_at": "oldest", "last_at": "youngest"}
_ARTICLE = "links__raw_article"


def problems() -> Iterator[Problem]:
    for cluster in _suspects().iterator(chunk_size=1000):
        # An empty cluster keeps the times of its former articles.
        said = _SAID if cluster.links_found else {"article_count": "links_found"}
        for what, found in said.items():
            if getattr(cluster, what) != getattr(cluster, found):
                yield Problem(cluster.pk, what, getattr(cluster, what), getattr(cluster, found))
        if cluster.links_found and bool(cluster.vectors) != bool(cluster.embedding_model):
            yield Problem(cluster.pk, "centroid", cluster.embedding_model, f"vectors of {cluster.vectors} articles")
        if cluster.links_found and cluster.merged_into_id:
            yield Problem(cluster.pk, "merged_into", cluster.merged_into_id, f"{cluster.links_found} articles")


def _suspects() -> Any:
    """Return the clusters that are wrong. The comparison runs in the database because most clusters are right."""
    return (
        EventCluster.objects.annotate(
            links_found=Count("links"),
            vectors=Count(f"{_ARTICLE}__embedding"),
            oldest=Min(f"{_ARTICLE}__happened_at"),
            youngest=Max(f"{_ARTICLE}__happened_at"),
        )
        .filter(
            ~Q(article_count=F("links_found"))
            | (
                Q(links_found__gt=0)
                & (
                    ~Q(first_at=F("oldest"))
                    | ~Q(last_at=F("youngest"))
                    | Q(merged_into__isnull=False)
                    | Q(vectors__gt=0, embedding_model="")
                    | (Q(vectors=0) & ~Q(embedding_model=""))
                )
            )
        )
        .defer("centroid")
        .order_by("pk")
    )
