"""Retention of what deleted articles leave behind: tombstones, and empty clusters, which expire at the same age as
articles.
"""

from collections.abc import Mapping

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from feeds.models import EventCluster, PurgedUrl
from feeds.retention import rules
from work import failpoints
from work.pruning import Policy, days_before_now, delete, due_of, in_batches, in_words, lock


def _empty_clusters() -> "QuerySet[EventCluster]":
    days = settings.ADE_KEEP_ARTICLES_DAYS
    if days is None:
        return EventCluster.objects.none()
    before = days_before_now(days)
    # A cluster created today may be about articles from long ago.
    return EventCluster.objects.filter(article_count=0, last_at__lt=before, created_at__lt=before)


def _purge_clusters(ids: list[int]) -> Mapping[str, int]:
    with transaction.atomic():
        locked = list(lock(_empty_clusters().filter(pk__in=ids)).values_list("pk", flat=True))
        clusters = delete(EventCluster, rules.not_needed(EventCluster, locked))
        failpoints.hit("retention.clusters.before_commit")
    return {"event_clusters": clusters}


def _old_tombstones() -> "QuerySet[PurgedUrl]":
    days = settings.ADE_KEEP_TOMBSTONES_DAYS
    return PurgedUrl.objects.filter(purged_at__lt=days_before_now(days)) if days else PurgedUrl.objects.none()


def _purge_tombstones(ids: list[int]) -> Mapping[str, int]:
    with transaction.atomic():
        # Check again after locking, because a tombstone may have been renewed.
        old = lock(_old_tombstones().filter(pk__in=ids))
        return {"purged_urls": delete(PurgedUrl, list(old.values_list("pk", flat=True)))}


CLUSTERS = Policy(
    "clusters without articles",
    keeps=lambda: in_words(settings.ADE_KEEP_ARTICLES_DAYS),
    due=lambda: due_of(_empty_clusters(), _empty_clusters().filter(rules.needed(EventCluster)), "last_at"),
    purge=lambda actor: in_batches(_empty_clusters(), _purge_clusters, moment="last_at"),
)
TOMBSTONES = Policy(
    "tombstones",
    keeps=lambda: in_words(settings.ADE_KEEP_TOMBSTONES_DAYS),
    due=lambda: due_of(_old_tombstones(), PurgedUrl.objects.none(), "purged_at"),
    purge=lambda actor: in_batches(_old_tombstones(), _purge_tombstones),
)
