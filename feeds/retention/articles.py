"""Retention of articles. They are kept for a number of days after they were seen, and longer if a brief refers to
them. An article is deleted together with its link, and a tombstone stays because its feed may list it for a long
time.
"""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from feeds.addresses import digest
from feeds.clustering.links import unlink
from feeds.models import PurgedUrl, RawArticle
from feeds.retention import rules
from work import clock, failpoints
from work.pruning import Policy, days_before_now, delete, due_of, in_batches, in_words, lock


def _old_articles() -> "QuerySet[RawArticle]":
    days = settings.ADE_KEEP_ARTICLES_DAYS
    return RawArticle.objects.filter(seen_at__lt=days_before_now(days)) if days else RawArticle.objects.none()


def _purge_batch(ids: list[int]) -> Mapping[str, int]:
    with transaction.atomic():
        # Lock the rows in a separate statement, so that the next statement sees every brief that was committed before
        # the lock.
        urls = dict(lock(RawArticle.objects.filter(pk__in=ids)).values_list("pk", "url"))
        expired = rules.not_needed(RawArticle, list(urls))
        failpoints.hit("retention.articles.selected")
        links = unlink(expired)
        tombstones = add_tombstones([urls[id] for id in expired])
        articles = delete(RawArticle, expired)
        failpoints.hit("retention.articles.before_commit")
    return {"raw_articles": articles, "cluster_articles": links, "tombstones_set": tombstones}


def add_tombstones(urls: Sequence[str]) -> int:
    """Add tombstones, in the transaction that deletes the articles. The time of an existing tombstone is renewed."""
    digests = set(map(digest, urls))
    now = clock.now()
    # Locked, so that no other transaction deletes an expired tombstone meanwhile. Sorted, so that two transactions
    # with the same URLs can't deadlock.
    locked = PurgedUrl.objects.select_for_update().filter(digest__in=digests).order_by("digest")
    known = set(locked.values_list("digest", flat=True))
    if known:
        PurgedUrl.objects.filter(digest__in=known).update(purged_at=now)
    new = [PurgedUrl(digest=each, purged_at=now) for each in sorted(digests - known)]
    return len(PurgedUrl.objects.bulk_create(new))


ARTICLES = Policy(
    "articles",
    keeps=lambda: in_words(settings.ADE_KEEP_ARTICLES_DAYS),
    due=lambda: due_of(_old_articles(), _old_articles().filter(rules.needed(RawArticle)), "seen_at"),
    purge=lambda actor: in_batches(_old_articles(), _purge_batch, moment="seen_at"),
)
