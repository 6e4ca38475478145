from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from django.db import models

from feeds.models.clusters import EventCluster
from feeds.models.sources import LONGEST_URL, RawArticle
from work import clock

T = TypeVar("T", bound=models.Model)


class Immutable(TypeError):
    def __init__(self, model: type[models.Model]) -> None:
        super().__init__(f"{model._meta.verbose_name} is immutable: it is inserted once, with all it says")


class ImmutableQuerySet(models.QuerySet[T]):
    def update(self, **values: Any) -> NoReturn:
        raise Immutable(self.model)

    def bulk_update(self, objs: Iterable[T], fields: Iterable[str], batch_size: int | None = None) -> NoReturn:
        raise Immutable(self.model)

    def delete(self) -> NoReturn:
        raise Immutable(self.model)


class Published(models.Model):
    """What has been published is neither changed nor deleted, nor is what it names."""

    class Meta:
        abstract = True

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise Immutable(type(self))
        super().save(**options)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Immutable(type(self))


class Brief(Published):
    """What has happened, as it was published for one slot of its job."""

    scheduled_for = models.DateTimeField(unique=True)
    # Its address: the day of its slot in its time zone, and a number behind it if the day has one already.
    name = models.CharField(max_length=20, unique=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    published_at = models.DateTimeField(default=clock.now)
    # Of the events that it had to choose from.
    window_from = models.DateTimeField()
    window_until = models.DateTimeField()
    articles_seen = models.PositiveIntegerField()
    # That have answered in this time, and that have not though they were asked; when one of them last did.
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
                violation_error_message="The window of a brief begins before it ends.",
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
    # Why it ranks where it does: the parts of the score, each with its words and its share.
    reasons = models.JSONField(default=list)

    objects = ImmutableQuerySet["BriefItem"].as_manager()

    class Meta:
        db_table = "brief_items"
        constraints = [
            models.UniqueConstraint(
                name="brief_item_position_is_unique_in_its_brief",
                fields=["brief", "position"],
                violation_error_message="This brief has an item in that position already.",
            ),
            models.UniqueConstraint(
                name="brief_item_cluster_is_unique_in_its_brief",
                fields=["brief", "cluster"],
                violation_error_message="This brief tells of that event already.",
            ),
        ]

    def __str__(self) -> str:
        return self.headline


class BriefArticle(Published):
    """One article of an item, in the words that it had then."""

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
                violation_error_message="This item has an article in that position already.",
            ),
        ]

    def __str__(self) -> str:
        return self.title
