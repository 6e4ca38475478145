"""The list of event clusters (articles of several feeds about the same event), and the page of one with its briefs."""

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import lists
from console.frame import for_members, page, show
from feeds.models import Brief, ClusterArticle, EventCluster

MOST_ARTICLES = 50
MOST_BRIEFS = 20


@page
@for_members
def clusters(request: HttpRequest) -> HttpResponseBase:
    slice = lists.slice_of(request, EventCluster.objects.defer("centroid"))
    # For each cluster, the names of the briefs that covered it, latest first.
    briefs: dict[int, list[str]] = {}
    rows = Brief.objects.filter(items__cluster__in=[cluster.pk for cluster in slice.rows])
    for id, name in rows.order_by("-scheduled_for").values_list("items__cluster", "name"):
        briefs.setdefault(id, []).append(name)
    context = {"slice": slice, "rows": [(cluster, briefs.get(cluster.pk, [])) for cluster in slice.rows]}
    return show(request, "console/clusters.html", "Events", context, live=reverse("console:live"))


@page
@for_members
def cluster(request: HttpRequest, id: int) -> HttpResponseBase:
    cluster = EventCluster.objects.defer("centroid").filter(pk=id).first()
    if cluster is None:
        raise Http404("No such event.")
    large = ("raw_article__embedding", "raw_article__original_url", "raw_article__summary")
    rows = ClusterArticle.objects.filter(cluster=id).select_related("raw_article__feed").defer(*large)
    links = list(rows.order_by("-similarity", "pk")[: MOST_ARTICLES + 1])
    context = {
        "cluster": cluster,
        "links": links[:MOST_ARTICLES],
        "is_cut": len(links) > MOST_ARTICLES,
        "sources": list(dict.fromkeys(link.raw_article.feed for link in links[:MOST_ARTICLES])),
        "briefs": Brief.objects.filter(items__cluster=id).order_by("-scheduled_for")[:MOST_BRIEFS],
    }
    return show(request, "console/cluster.html", f"Event {id}", context, live=reverse("console:live"))
