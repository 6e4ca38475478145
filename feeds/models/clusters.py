from django.db import models
from django.db.models import Q

from feeds.models.sources import RawArticle
from work import clock


class EventCluster(models.Model):
    """Articles about one event. A cluster keeps its ID while articles are added and removed."""

    title = models.CharField(max_length=500)
    # Changes only together with an inserted or deleted link, in the same transaction.
    article_count = models.IntegerField(default=0)
    # The oldest and youngest article.
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    # The normalised sum of the article vectors, and their model.
    centroid = models.BinaryField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")
    # The cluster that took most articles of this one, when it became empty.
    merged_into = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="merged")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "event_clusters"
        constraints = [
            models.CheckConstraint(
                name="event_cluster_count_is_not_negative",
                condition=Q(article_count__gte=0),
                violation_error_message="A cluster cannot have fewer than zero articles.",
            ),
            models.CheckConstraint(
                name="event_cluster_times_are_in_order",
                condition=Q(first_at__lte=models.F("last_at")),
                violation_error_message="The first article of a cluster cannot be newer than its last one.",
            ),
        ]
        indexes = [models.Index(name="clusters_by_time", fields=["last_at", "id"])]

    def __str__(self) -> str:
        return self.title


class ClusterArticle(models.Model):
    cluster = models.ForeignKey(EventCluster, on_delete=models.PROTECT, related_name="links", db_index=False)
    raw_article = models.ForeignKey(RawArticle, on_delete=models.PROTECT, related_name="links", db_index=False)
    # Cosine of the article and the centre of its cluster; 1 is identical.
    similarity = models.FloatField(default=1.0)
    linked_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "cluster_articles"
        constraints = [
            models.UniqueConstraint(
                name="cluster_article_linked_once",
                fields=["cluster", "raw_article"],
                violation_error_message="This article is already in this cluster.",
            ),
            models.UniqueConstraint(
                name="cluster_article_has_one_cluster",
                fields=["raw_article"],
                violation_error_message="This article is already in a cluster.",
            ),
        ]

    def __str__(self) -> str:
        return f"article {self.raw_article_id} in cluster {self.cluster_id}"
