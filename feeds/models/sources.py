from datetime import datetime

from django.db import models
from django.db.models import Q

from work import clock
from work.models import Subject, SubjectQuerySet

# The longest key that every database can keep unique: an index key of SQL Server has room for 850 characters.
LONGEST_URL = 800


class FeedQuerySet(SubjectQuerySet["FeedSource"]):
    def due(self) -> "FeedQuerySet":
        """Return active feeds that are due for a check, starting with the one that has been due longest."""
        return self.filter(paused_at__isnull=True, next_check_at__lte=clock.now()).order_by("next_check_at", "id")

    def failing(self) -> "FeedQuerySet":
        return self.filter(paused_at__isnull=True, failures__gt=0)

    def failing_from(self, moment: datetime) -> "FeedQuerySet":
        """Return failing feeds that began to fail at `moment` or later."""
        return self.failing().filter(failing_since__gte=moment)

    def silent_since(self, moment: datetime) -> "FeedQuerySet":
        """Return failing feeds without a successful check since `moment`."""
        never = Q(succeeded_at__isnull=True, created_at__lt=moment)
        return self.failing().filter(never | Q(succeeded_at__lt=moment))

    def paused(self) -> "FeedQuerySet":
        return self.filter(paused_at__isnull=False)


class FeedSource(Subject):
    """A feed. It belongs to the whole installation, and its articles are for all workspaces."""

    url = models.CharField(max_length=LONGEST_URL, unique=True)
    title = models.CharField(max_length=300, blank=True, default="")
    site_url = models.CharField(max_length=LONGEST_URL, blank=True, default="")
    # Validators for conditional requests, so that the server can answer that nothing is new.
    etag = models.CharField(max_length=500, blank=True, default="")
    last_modified = models.CharField(max_length=200, blank=True, default="")
    next_check_at = models.DateTimeField(default=clock.now)
    checked_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    # Failures in a row. They decide how long the feed backs off; it is never given up.
    failures = models.PositiveIntegerField(default=0)
    # The time of the first of these failures.
    failing_since = models.DateTimeField(null=True, blank=True)
    # The last failure; or, if the feed answered, what could not be read from it.
    last_error = models.TextField(blank=True, default="")
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = FeedQuerySet.as_manager()

    class Meta:
        db_table = "feed_sources"
        verbose_name = "feed"
        constraints = [
            models.CheckConstraint(
                name="feed_paused_by_somebody",
                condition=Q(paused_at__isnull=True, paused_by="") | (Q(paused_at__isnull=False) & ~Q(paused_by="")),
                violation_error_message="A paused feed needs the name of the person who paused it.",
            ),
            models.CheckConstraint(
                name="feed_failures_have_an_error",
                condition=Q(failures=0) | ~Q(last_error=""),
                violation_error_message="A failed feed needs an error.",
            ),
            models.CheckConstraint(
                name="feed_failing_since_is_set_exactly_while_it_fails",
                condition=Q(failures=0, failing_since__isnull=True) | Q(failures__gt=0, failing_since__isnull=False),
                violation_error_message="Only a failing feed has a time since when it fails.",
            ),
        ]
        indexes = [models.Index(name="feeds_due", fields=["next_check_at", "id"], condition=Q(paused_at__isnull=True))]

    def __str__(self) -> str:
        return self.title or self.url

    @property
    def state(self) -> str:
        if self.paused_at:
            return "paused"
        if self.failures:
            return "failing"
        return "ok" if self.checked_at else "new"


class RawArticle(models.Model):
    """An article as its feed described it. It never changes, except for its vector."""

    feed = models.ForeignKey(FeedSource, on_delete=models.PROTECT, related_name="articles")
    # The canonical spelling without tracking parameters; and the URL as it is in the feed.
    url = models.CharField(max_length=LONGEST_URL, unique=True)
    original_url = models.TextField()
    title = models.CharField(max_length=500)
    summary = models.TextField(blank=True, default="")
    author = models.CharField(max_length=200, blank=True, default="")
    # The date that the feed gives, if any.
    published_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(default=clock.now)
    # The publication date but never later than `seen_at`; `seen_at` if there is no date.
    happened_at = models.DateTimeField()
    # The vector of the title and summary (little-endian 32-bit floats), and its model.
    embedding = models.BinaryField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")

    class Meta:
        db_table = "raw_articles"
        constraints = [
            models.CheckConstraint(
                name="raw_article_has_a_title",
                condition=~Q(title=""),
                violation_error_message="An article needs a title.",
            ),
            models.CheckConstraint(
                name="raw_article_happened_before_it_was_seen",
                condition=Q(happened_at__lte=models.F("seen_at")),
                violation_error_message="An article cannot be seen before it was published.",
            ),
        ]
        indexes = [
            models.Index(name="articles_by_event", fields=["happened_at", "id"]),
            models.Index(name="articles_by_arrival", fields=["seen_at", "id"]),
        ]

    def __str__(self) -> str:
        return self.title


class PurgedUrl(models.Model):
    """The URL of a purged article, so that it is not stored again while its feed still lists it."""

    # SHA-256 of the canonical URL, in hexadecimal.
    digest = models.CharField(max_length=64, unique=True)
    purged_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "purged_urls"

    def __str__(self) -> str:
        return self.digest
