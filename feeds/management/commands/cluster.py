from typing import Any

from feeds.clustering import consistency
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
# Most articles of a cluster and most problems that are shown. The number of problems is always the total.
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
        clusters = EventCluster.objects.order_by("-id")
        clusters = clusters.filter(article_count__gte=articles) if articles else clusters
        clusters = clusters.filter(pk__lt=before) if before else clusters
        rows = list(clusters.values(*COLUMNS)[:limit])
        return Answer({"clusters": rows}, table(rows, "id", "article_count", "first_at", "last_at", "title"))

    def show(self, *, id: int, **_: Any) -> Answer:
        row = EventCluster.objects.filter(pk=id).values(*COLUMNS).first()
        if row is None:
            raise not_found("cluster", id, "`manage.py cluster list` shows them")
        links = ClusterArticle.objects.filter(cluster=id).select_related("raw_article__feed")
        links = links.defer("raw_article__embedding", "raw_article__summary")
        articles = [
            {
                "id": link.raw_article.pk,
                "title": link.raw_article.title,
                "url": link.raw_article.url,
                "feed": str(link.raw_article.feed),
                "happened_at": link.raw_article.happened_at,
                "similarity": link.similarity,
                "linked_at": link.linked_at,
            }
            for link in links.order_by("-raw_article__happened_at", "-raw_article__url")[:MOST_ARTICLES]
        ]
        shown = table(articles, "id", "happened_at", "similarity", "feed", "title")
        return Answer(row | {"articles": articles}, f"{fields(row)}\n\n{shown}")

    def compare(self, **_: Any) -> Answer:
        problems = list(consistency.problems())
        rows = [
            {"cluster": each.cluster_id, "what": each.what, "says": each.says, "found": each.found}
            for each in problems[:MOST_PROBLEMS]
        ]
        data = {"clusters": EventCluster.objects.count(), "wrong": len(problems), "problems": rows}
        if not problems:
            return Answer(data, f"No differences in {data['clusters']} clusters.")
        shown = table(rows, "cluster", "what", "says", "found")
        text = f"{shown}\n\nValues of clusters that differ from their links: {len(problems)}."
        return Answer(data, text, Exit.REFUSED)
