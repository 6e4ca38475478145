"""Event clusters: articles of several feeds about the same event. They belong to the installation."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import insider_of
from api.errors import not_found
from api.frame import Out, responses
from api.moments import Moment
from api.pages import Listing, Page, page
from api.routes.feeds import ArticleOut
from feeds.models import EventCluster, RawArticle

routes = Router(tags=["clusters"])

# The detail of a cluster lists at most this many articles.
MOST_LISTED = 50


class ClusterOut(Out):
    id: int
    title: str
    article_count: int
    first_at: datetime
    last_at: datetime
    merged_into_id: Annotated[int | None, Field(description="the cluster that now has its articles")]
    created_at: datetime


class ClusterDetailOut(ClusterOut):
    articles: Annotated[list[ArticleOut], Field(description=f"at most {MOST_LISTED}, nearest to the centre first")]


class Clusters(Listing):
    since: Annotated[Moment | None, Field(description="only clusters whose last article is not older")] = None


@routes.get("/clusters", response=responses({200: Page[ClusterOut]}))
def list_clusters(request: HttpRequest, listing: Query[Clusters]) -> dict[str, Any]:
    insider_of(request)
    rows = EventCluster.objects.defer("centroid")
    return page(rows.filter(last_at__gte=listing.since) if listing.since else rows, listing, ClusterOut.of)


@routes.get("/clusters/{id:id}", response=responses({200: ClusterDetailOut}))
def show(request: HttpRequest, id: int) -> dict[str, Any]:
    insider_of(request)
    cluster = _cluster(id)
    nearest = _articles(cluster).order_by("-links__similarity", "id")[:MOST_LISTED]
    return ClusterOut.of(cluster) | {"articles": [ArticleOut.of(article) for article in nearest]}


@routes.get("/clusters/{id:id}/articles", response=responses({200: Page[ArticleOut]}))
def list_articles(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    insider_of(request)
    return page(_articles(_cluster(id)), listing, ArticleOut.of)


def _cluster(id: int) -> EventCluster:
    cluster = EventCluster.objects.defer("centroid").filter(pk=id).first()
    if cluster is None:
        raise not_found("cluster", id)
    return cluster


def _articles(cluster: EventCluster) -> Any:
    return RawArticle.objects.filter(links__cluster=cluster).defer("embedding", "original_url")
