from django.db import models
from django.db.models import Q

from feeds.models.sources import RawArticle
from work import clock


class EventCluster(models.Model):
    """Articles that tell of one event. It keeps its id while articles come and go."""

    title = models.CharField(max_length=500)
    # Changes with a link that is really inserted or deleted, in the same transaction, and never otherwise.
    article_count = models.IntegerField(default=0)
    # Of its articles.
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    # The sum of their vectors, of length 1, and by which model they are.
    centroid = models.BinaryField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")
    # What has become of one whose articles have all gone to another.
    merged_into = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="merged")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "event_clusters"
        constraints = [
            models.CheckConstraint(
                name="event_cluster_count_is_not_negative",
                condition=Q(article_count__gte=0),
                violation_error_message="A cluster has no fewer than zero articles.",
            ),
            models.CheckConstraint(
                name="event_cluster_times_are_in_order",
                condition=Q(first_at__lte=models.F("last_at")),
                violation_error_message="The first article of a cluster is not younger than its last.",
            ),
        ]
        indexes = [models.Index(name="clusters_by_time", fields=["last_at", "id"])]

    def __str__(self) -> str:
        return self.title


class ClusterArticle(models.Model):
    cluster = models.ForeignKey(EventCluster, on_delete=models.PROTECT, related_name="links", db_index=False)
    raw_article = models.ForeignKey(RawArticle, on_delete=models.PROTECT, related_name="links", db_index=False)
    # How near it is to the centre of its cluster: 1 is the same.
    similarity = models.FloatField(default=1.0)
    linked_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "cluster_articles"
        constraints = [
            models.UniqueConstraint(
                name="cluster_article_linked_once",
                fields=["cluster", "raw_article"],
                violation_error_message="This article is in this cluster already.",
            ),
            models.UniqueConstraint(
                name="cluster_article_has_one_cluster",
                fields=["raw_article"],
                violation_error_message="This article is in a cluster already.",
            ),
        ]

    def __str__(self) -> str:
        return f"article {self.raw_article_id} in cluster {self.cluster_id}"
