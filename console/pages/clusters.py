"""Event clusters: articles of several feeds about the same event, and the briefs that covered them."""

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import lists
from console.frame import for_members, page, show
from feeds.models import Brief, ClusterArticle, EventCluster

MOST_TOLD = 50
MOST_BRIEFS = 20


@page
@for_members
def clusters(request: HttpRequest) -> HttpResponseBase:
    found = lists.slice_of(request, EventCluster.objects.defer("centroid"))
    told = _told([cluster.pk for cluster in found.rows])
    context = {"slice": found, "rows": [(cluster, told.get(cluster.pk, [])) for cluster in found.rows]}
    return show(request, "console/clusters.html", "Events", context, live=reverse("console:live"))


@page
@for_members
def cluster(request: HttpRequest, id: int) -> HttpResponseBase:
    found = EventCluster.objects.defer("centroid").filter(pk=id).first()
    if found is None:
        raise Http404("No such event.")
    links = list(_links(id)[: MOST_TOLD + 1])
    context = {
        "cluster": found,
        "links": links[:MOST_TOLD],
        "is_cut": len(links) > MOST_TOLD,
        "sources": list(dict.fromkeys(link.raw_article.feed for link in links[:MOST_TOLD])),
        "briefs": Brief.objects.filter(items__cluster=id).order_by("-scheduled_for")[:MOST_BRIEFS],
    }
    return show(request, "console/cluster.html", f"Event {id}", context, live=reverse("console:live"))


def _links(id: int) -> "QuerySet[ClusterArticle]":
    """Return the articles of a cluster, the most similar first."""
    left_out = ("raw_article__embedding", "raw_article__original_url", "raw_article__summary")
    rows = ClusterArticle.objects.filter(cluster=id).select_related("raw_article__feed").defer(*left_out)
    return rows.order_by("-similarity", "pk")


def _told(ids: Sequence[int]) -> Mapping[int, Sequence[str]]:
    """Return for each event the names of the briefs that covered it, latest first."""
    found: dict[int, list[str]] = {}
    briefs = Brief.objects.filter(items__cluster__in=ids).order_by("-scheduled_for")
    for id, name in briefs.values_list("items__cluster", "name"):
        found.setdefault(id, []).append(name)
    return found
