from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from django.db import models

from feeds.models.clusters import EventCluster
from feeds.models.sources import LONGEST_URL, RawArticle
from work import clock

T = TypeVar("T", bound=models.Model)


class Immutable(TypeError):
    def __init__(self, model: type[models.Model]) -> None:
        super().__init__(
            f"The {model._meta.verbose_name} is immutable: it cannot be changed or deleted after it was inserted."
        )


class ImmutableQuerySet(models.QuerySet[T]):
    def update(self, **values: Any) -> NoReturn:
        raise Immutable(self.model)

    def bulk_update(self, objs: Iterable[T], fields: Iterable[str], batch_size: int | None = None) -> NoReturn:
        raise Immutable(self.model)

    def delete(self) -> NoReturn:
        raise Immutable(self.model)


class Published(models.Model):
    """Base of published rows. They are never changed or deleted, and neither are the rows that they refer to."""

    class Meta:
        abstract = True

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise Immutable(type(self))
        super().save(**options)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Immutable(type(self))


class Brief(Published):
    """The brief of one slot of its job."""

    scheduled_for = models.DateTimeField(unique=True)
    # Used in the URL: the local date of the slot, with a numeric suffix if the day already has a brief.
    name = models.CharField(max_length=20, unique=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    published_at = models.DateTimeField(default=clock.now)
    # The time window of the events that the brief could choose from.
    window_from = models.DateTimeField()
    window_until = models.DateTimeField()
    articles_seen = models.PositiveIntegerField()
    # The number of feeds that answered in the window; the number that were fetched but did not answer; and the last
    # time that any feed answered.
    feeds_seen = models.PositiveIntegerField()
    feeds_silent = models.PositiveIntegerField(default=0)
    last_answer_at = models.DateTimeField(null=True, blank=True)
    clusters_seen = models.PositiveIntegerField()

    objects = ImmutableQuerySet["Brief"].as_manager()

    class Meta:
        db_table = "briefs"
        constraints = [
            models.CheckConstraint(
                name="brief_window_is_in_order",
                condition=models.Q(window_from__lte=models.F("window_until")),
                violation_error_message="The window of a brief must begin before it ends.",
            ),
        ]

    def __str__(self) -> str:
        return f"Brief of {self.name}"


class BriefItem(Published):
    brief = models.ForeignKey(Brief, on_delete=models.PROTECT, related_name="items", db_index=False)
    position = models.PositiveSmallIntegerField()
    cluster = models.ForeignKey(EventCluster, on_delete=models.PROTECT, related_name="brief_items")
    headline = models.CharField(max_length=500)
    summary = models.TextField(blank=True, default="")
    article_count = models.PositiveIntegerField()
    score = models.FloatField()
    # Why the item ranks where it does: the parts of its score, each with its words and share.
    reasons = models.JSONField(default=list)

    objects = ImmutableQuerySet["BriefItem"].as_manager()

    class Meta:
        db_table = "brief_items"
        constraints = [
            models.UniqueConstraint(
                name="brief_item_position_is_unique_in_its_brief",
                fields=["brief", "position"],
                violation_error_message="This brief already has an item at this position.",
            ),
            models.UniqueConstraint(
                name="brief_item_cluster_is_unique_in_its_brief",
                fields=["brief", "cluster"],
                violation_error_message="This brief already includes this event.",
            ),
        ]

    def __str__(self) -> str:
        return self.headline


class BriefArticle(Published):
    """An article of an item, with its title and URL at the time of publishing."""

    item = models.ForeignKey(BriefItem, on_delete=models.PROTECT, related_name="articles", db_index=False)
    position = models.PositiveSmallIntegerField()
    raw_article = models.ForeignKey(RawArticle, on_delete=models.PROTECT, related_name="brief_articles")
    url = models.CharField(max_length=LONGEST_URL)
    title = models.CharField(max_length=500)
    source = models.CharField(max_length=300)
    happened_at = models.DateTimeField()

    objects = ImmutableQuerySet["BriefArticle"].as_manager()

    class Meta:
        db_table = "brief_articles"
        constraints = [
            models.UniqueConstraint(
                name="brief_article_position_is_unique_in_its_item",
                fields=["item", "position"],
                violation_error_message="This item already has an article at this position.",
            ),
        ]

    def __str__(self) -> str:
        return self.title
