from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q

from work import clock
from work.models import Subject, SubjectQuerySet, Work, work_constraints
from workspaces.models import User, Workspace, visible_to

LONGEST_URL = 2000


class Topic(models.TextChoices):
    """Outcomes that a webhook can subscribe to."""

    RUN_SUCCEEDED = "run.succeeded", "run succeeded"
    RUN_FAILED = "run.failed", "run failed"
    RUN_CANCELLED = "run.cancelled", "run cancelled"
    BUILD_READY = "build.ready", "build ready"
    BUILD_FAILED = "build.failed", "build failed"
    BUILD_CANCELLED = "build.cancelled", "build cancelled"
    DOCUMENT_PROCESSED = "document.processed", "document processed"
    DOCUMENT_FAILED = "document.failed", "document failed"


# The topic of a test delivery, which has no event.
PING = "ping"


class WebhookQuerySet(SubjectQuerySet["Webhook"]):
    def for_user(self, user: User) -> "WebhookQuerySet":
        return visible_to(self, user, "workspace").there()

    def listed(self) -> "WebhookQuerySet":
        return self.select_related("workspace")

    def there(self) -> "WebhookQuerySet":
        return self.filter(removed_at__isnull=True)


class Webhook(Subject):
    """A URL that is notified of the outcomes of a workspace's work."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=LONGEST_URL)
    # Values of Topic.
    topics = models.JSONField(default=list)
    # The secret is derived from this salt and SECRET_KEY; the secret itself is not stored.
    salt = models.CharField(max_length=64, editable=False)
    # Hash of the secret, which shows whether SECRET_KEY has changed.
    secret_sha256 = models.CharField(max_length=64, editable=False)
    # The salt and hash of the previous secret, which also signs deliveries until it expires.
    earlier_salt = models.CharField(max_length=64, blank=True, default="", editable=False)
    earlier_sha256 = models.CharField(max_length=64, blank=True, default="", editable=False)
    earlier_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    paused_at = models.DateTimeField(null=True, blank=True, editable=False)
    paused_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    paused_for = models.CharField(max_length=500, blank=True, default="", editable=False)
    # Webhooks take turns: the one that has waited longest is next.
    tried_at = models.DateTimeField(default=clock.now, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    created_by = models.CharField(max_length=200, editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        db_table = "webhooks"
        constraints = [
            models.UniqueConstraint(
                name="webhook_name_is_unique_in_its_workspace",
                fields=["workspace", "name"],
                condition=Q(removed_at__isnull=True),
                violation_error_message="This workspace already has a webhook with this name.",
            ),
            models.CheckConstraint(
                name="webhook_paused_by_somebody",
                condition=Q(paused_at__isnull=True, paused_by="") | (Q(paused_at__isnull=False) & ~Q(paused_by="")),
                violation_error_message="A paused webhook needs the name of the person who paused it.",
            ),
            models.CheckConstraint(
                name="webhook_earlier_secret_has_an_end",
                condition=Q(earlier_expires_at__isnull=True, earlier_salt="")
                | (Q(earlier_expires_at__isnull=False) & ~Q(earlier_salt="")),
                violation_error_message="The previous secret of a webhook needs an end time.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        if self.removed_at:
            return "removed"
        return "paused" if self.paused_at else "active"

    def is_earlier_good(self, now: datetime) -> bool:
        return self.earlier_expires_at is not None and now < self.earlier_expires_at


class DeliveryQuerySet(SubjectQuerySet["Delivery"]):
    def for_user(self, user: User) -> "DeliveryQuerySet":
        return visible_to(self, user, "webhook__workspace")

    def listed(self) -> "DeliveryQuerySet":
        return self.select_related("webhook__workspace")

    def claimable(self, now: Any) -> "DeliveryQuerySet":
        """Return due deliveries of webhooks that are not sending one, so that a slow receiver doesn't delay other
        receivers.
        """
        due = self.filter(status=Delivery.Status.QUEUED, next_attempt_at__lte=now)
        due = due.filter(webhook__paused_at__isnull=True, webhook__removed_at__isnull=True)
        sending = Delivery._base_manager.filter(status=Delivery.Status.SENDING, webhook=OuterRef("webhook"))
        return due.filter(~Exists(sending)).order_by("webhook__tried_at", "next_attempt_at", "id")


class Delivery(Work):
    """One message to one webhook, until its receiver accepts it or the attempts are used up."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    ACTIVE = CLAIMED = Status.SENDING
    TERMINAL = frozenset({Status.DELIVERED, Status.FAILED})

    # `deliveries_of_a_webhook` also serves as the index of this foreign key.
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED, editable=False)
    topic = models.CharField(max_length=32)
    # ID in the table `events`, without a foreign key because events may be pruned. None for a ping.
    event_id = models.BigIntegerField(null=True, blank=True)
    # The delivery that this one repeats; it may have been pruned.
    resend_of = models.BigIntegerField(null=True, blank=True)
    payload = models.JSONField()
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=clock.now)
    # Status of the last response; None if there was none.
    answered = models.PositiveSmallIntegerField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        db_table = "webhook_deliveries"
        verbose_name_plural = "deliveries"
        constraints = [
            *work_constraints(
                "delivery",
                ["queued", "sending", "delivered", "failed"],
                claimed="sending",
                terminal=["delivered", "failed"],
            ),
            models.UniqueConstraint(
                name="delivery_one_per_webhook_and_event",
                fields=["webhook", "event_id"],
                condition=Q(resend_of__isnull=True, event_id__isnull=False),
                violation_error_message="This webhook already has a delivery for this event.",
            ),
            models.UniqueConstraint(
                name="delivery_one_at_a_time_per_webhook",
                fields=["webhook"],
                condition=Q(status="sending"),
                violation_error_message="Another delivery to this webhook is in progress.",
            ),
            models.CheckConstraint(
                name="delivery_delivered_was_answered",
                condition=~Q(status="delivered") | Q(answered__gte=200, answered__lte=299),
                violation_error_message="A delivered message needs a response code from 200 to 299.",
            ),
            models.CheckConstraint(
                name="delivery_failure_says_why",
                condition=~Q(status="failed") | ~Q(error_message=""),
                violation_error_message="A failed delivery needs an error.",
            ),
        ]
        indexes = [
            models.Index(name="deliveries_queued", fields=["next_attempt_at", "id"], condition=Q(status="queued")),
            models.Index(name="deliveries_expiring", fields=["lease_expires_at"], condition=Q(status="sending")),
            models.Index(name="deliveries_of_a_webhook", fields=["webhook", "id"]),
            models.Index(name="deliveries_by_age", fields=["finished_at", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.topic} to {self.webhook_id}"


class WebhookTail(models.Model):
    """The single row that stores how far the table of events has been read for webhooks. The worker that holds its
    lease reads on.
    """

    ONLY = 1

    owner = models.CharField(max_length=200, blank=True, default="")
    expires_at = models.DateTimeField(default=clock.now)
    # In the format of `work/tail.py`.
    position = models.TextField(blank=True, default="")

    class Meta:
        db_table = "webhook_tail"
        constraints = [
            models.CheckConstraint(
                name="webhook_tail_is_one_row",
                condition=Q(pk=1),
                violation_error_message="There is a single position up to which events were read, in row 1.",
            ),
        ]

    def __str__(self) -> str:
        return self.position
