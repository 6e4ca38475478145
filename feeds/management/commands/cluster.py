from collections.abc import Mapping
from typing import Any

from feeds.clustering import checking
from feeds.models import ClusterArticle, EventCluster
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    NounCommand,
    add_ids,
    add_limit,
    fields,
    limit,
    not_found,
    table,
)

COLUMNS = ("id", "title", "article_count", "first_at", "last_at", "embedding_model", "merged_into", "created_at")
# Most articles of one cluster that are shown, and most problems; the total of problems is not limited.
MOST_ARTICLES = 100
MOST_PROBLEMS = 100


class Command(NounCommand):
    help = "Event clusters: groups of articles about one event."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_clusters, "List clusters, newest first.")
        listing.add_argument(
            "--articles",
            metavar="N",
            type=limit,
            help="only clusters with at least N articles (default: also empty ones)",
        )
        add_limit(listing)
        add_ids(add("show", self.show, "Show a cluster and its articles, latest first."))
        add(
            "check",
            self.compare,
            "Compare the counts and times of clusters with their links. Exit code 1: they differ.",
        )

    def list_clusters(self, *, articles: int | None, limit: int, before: int | None, **_: Any) -> Answer:
        found = EventCluster.objects.order_by("-id")
        found = found.filter(article_count__gte=articles) if articles else found
        found = found.filter(pk__lt=before) if before else found
        rows = list(found.values(*COLUMNS)[:limit])
        return Answer({"clusters": rows}, table(rows, "id", "article_count", "first_at", "last_at", "title"))

    def show(self, *, id: int, **_: Any) -> Answer:
        row = EventCluster.objects.filter(pk=id).values(*COLUMNS).first()
        if row is None:
            raise not_found("cluster", id, "`manage.py cluster list` shows them")
        articles = [_article(link) for link in _links(id)]
        shown = table(articles, "id", "happened_at", "similarity", "feed", "title")
        return Answer(row | {"articles": articles}, f"{fields(row)}\n\n{shown}")

    def compare(self, **_: Any) -> Answer:
        found = list(checking.problems())
        told = [
            {"cluster": each.cluster_id, "what": each.what, "says": each.says, "found": each.found} for each in found
        ][:MOST_PROBLEMS]
        data = {"clusters": EventCluster.objects.count(), "wrong": len(found), "problems": told}
        if not found:
            return Answer(data, f"No differences in {data['clusters']} clusters.")
        shown = table(told, "cluster", "what", "says", "found")
        text = f"{shown}\n\nValues of clusters that differ from their links: {len(found)}."
        return Answer(data, text, Exit.REFUSED)


def _links(cluster_id: int) -> Any:
    links = ClusterArticle.objects.filter(cluster=cluster_id).select_related("raw_article__feed")
    links = links.defer("raw_article__embedding", "raw_article__summary")
    return links.order_by("-raw_article__happened_at", "-raw_article__url")[:MOST_ARTICLES]


def _article(link: ClusterArticle) -> Mapping[str, Any]:
    article = link.raw_article
    return {
        "id": article.pk,
        "title": article.title,
        "url": article.url,
        "feed": str(article.feed),
        "happened_at": article.happened_at,
        "similarity": link.similarity,
        "linked_at": link.linked_at,
    }
