from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from documents.models.documents import Document
from work import clock
from work.models import SubjectQuerySet, Work, work_constraints
from workspaces.models import User, visible_to


def attempts_of_settings() -> int:
    return int(settings.ADE_DOCUMENT_ATTEMPTS)


class DocumentProcessingJobQuerySet(SubjectQuerySet["DocumentProcessingJob"]):
    def for_user(self, user: User) -> "DocumentProcessingJobQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentProcessingJobQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")

    def live(self) -> "DocumentProcessingJobQuerySet":
        return self.filter(status__in=[DocumentProcessingJob.Status.PENDING, DocumentProcessingJob.Status.PROCESSING])

    def last_error(self, document_id: int) -> str:
        """Return the error of the document's last failed job, or "" if there is none."""
        failed = self.filter(document=document_id, status=DocumentProcessingJob.Status.FAILED).order_by("-id")
        return failed.values_list("error_message", flat=True).first() or ""

    def claimable(self, now: Any) -> "DocumentProcessingJobQuerySet":
        return self._due(DocumentProcessingJob.Priority.NORMAL, now)

    def claimable_in_bulk(self, now: Any) -> "DocumentProcessingJobQuerySet":
        return self._due(DocumentProcessingJob.Priority.BULK, now)

    def _due(self, priority: int, now: Any) -> "DocumentProcessingJobQuerySet":
        # Query one priority at a time, so that the index already gives the order.
        pending = self.filter(status=DocumentProcessingJob.Status.PENDING, priority=priority)
        return pending.filter(next_attempt_at__lte=now).order_by("next_attempt_at", "id")


class DocumentProcessingJob(Work):
    """The processing of one document. Workers claim the stages of a job, not the job itself."""

    class Status(models.TextChoices):
        PENDING = "PENDING"
        PROCESSING = "PROCESSING"
        COMPLETED = "COMPLETED"
        FAILED = "FAILED"

    class Priority(models.IntegerChoices):
        NORMAL = 0
        # For many documents that are processed again together. Such a job begins only when no normal job is due.
        BULK = 1

    ACTIVE = Status.PROCESSING
    CLAIMED = None
    TERMINAL = frozenset({Status.COMPLETED, Status.FAILED})

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="jobs")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING, editable=False)
    priority = models.PositiveSmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    attempts = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=attempts_of_settings)
    next_attempt_at = models.DateTimeField(default=clock.now)
    completed_at = models.DateTimeField(null=True, blank=True, editable=False)
    error_log = models.TextField(blank=True, default="")

    objects = DocumentProcessingJobQuerySet.as_manager()

    class Meta:
        db_table = "document_processing_jobs"
        constraints = [
            *work_constraints(
                "job",
                ["PENDING", "PROCESSING", "COMPLETED", "FAILED"],
                claimed=None,
                terminal=["COMPLETED", "FAILED"],
            ),
            models.UniqueConstraint(
                name="job_one_live_per_document",
                fields=["document"],
                condition=Q(status__in=["PENDING", "PROCESSING"]),
                violation_error_message="This document is already being processed.",
            ),
            models.CheckConstraint(
                name="job_completed_at_is_set_exactly_when_completed",
                condition=Q(status="COMPLETED", completed_at__isnull=False)
                | (~Q(status="COMPLETED") & Q(completed_at__isnull=True)),
                violation_error_message="Only a completed job has a completion time.",
            ),
            models.CheckConstraint(
                name="job_attempts_stay_within_the_limit",
                condition=Q(attempts__gte=0, attempts__lte=F("max_attempts")),
                violation_error_message="A job cannot have more attempts than its limit.",
            ),
            models.CheckConstraint(
                name="job_priority_is_known",
                condition=Q(priority__in=[0, 1]),
                violation_error_message="The job priority is unknown.",
            ),
            models.CheckConstraint(
                name="job_failure_leaves_an_error_log",
                condition=~Q(status="FAILED") | ~Q(error_log=""),
                violation_error_message="A failed job needs an error.",
            ),
        ]
        indexes = [
            models.Index(
                name="jobs_pending", fields=["priority", "next_attempt_at", "id"], condition=Q(status="PENDING")
            ),
            models.Index(name="jobs_processing", fields=["started_at"], condition=Q(status="PROCESSING")),
        ]

    def __str__(self) -> str:
        return f"job {self.pk} of document {self.document_id}"


class StageQuerySet(SubjectQuerySet["Stage"]):
    def for_user(self, user: User) -> "StageQuerySet":
        return visible_to(self, user, "job__document__workspace")

    def listed(self) -> "StageQuerySet":
        return self.select_related("job__document__workspace").defer("job__document__text", "job__document__embedding")

    def claimable(self, now: Any) -> "StageQuerySet":
        # Skip stages of a job that was given back or has failed: the next attempt of that job renews them.
        processing = self.filter(status=Stage.Status.READY, job__status=DocumentProcessingJob.Status.PROCESSING)
        return processing.order_by("created_at", "id")

    def unfinished(self) -> "StageQuerySet":
        return self.exclude(status=Stage.Status.DONE)


class Stage(Work):
    """One step of a processing job, or one page range (segment) of such a step. Workers claim stages under a lease."""

    class Name(models.TextChoices):
        EXTRACT = "extract"
        EMBED = "embed"
        PUBLISH = "publish"

    class Status(models.TextChoices):
        NEW = "NEW"
        READY = "READY"
        RUNNING = "RUNNING"
        DONE = "DONE"
        ERROR = "ERROR"

    ACTIVE = CLAIMED = Status.RUNNING
    TERMINAL = frozenset({Status.DONE, Status.ERROR})

    job = models.ForeignKey(DocumentProcessingJob, on_delete=models.CASCADE, related_name="stages")
    name = models.CharField(max_length=16, choices=Name.choices)
    segment = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.NEW, editable=False)
    # How many workers were lost while they held this stage, over all attempts of the job.
    losses = models.PositiveSmallIntegerField(default=0)
    # How often the stage was given back because the service that it needs was away.
    postponements = models.PositiveIntegerField(default=0)
    # The pause that the service asked for when the stage failed.
    retry_after_seconds = models.FloatField(null=True, blank=True, editable=False)

    objects = StageQuerySet.as_manager()

    class Meta:
        db_table = "stages"
        constraints = [
            *work_constraints(
                "stage",
                ["NEW", "READY", "RUNNING", "DONE", "ERROR"],
                claimed="RUNNING",
                terminal=["DONE", "ERROR"],
            ),
            models.UniqueConstraint(
                name="stage_one_per_job_name_and_segment",
                fields=["job", "name", "segment"],
                violation_error_message="This job already has this stage.",
            ),
            models.CheckConstraint(
                name="stage_name_is_known",
                condition=Q(name__in=["embed", "extract", "publish"]),
                violation_error_message="Unknown stage. Known stages: extract, embed, publish.",
            ),
        ]
        indexes = [
            models.Index(name="stages_ready", fields=["created_at", "id"], condition=Q(status="READY")),
            models.Index(name="stages_expiring", fields=["lease_expires_at"], condition=Q(status="RUNNING")),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.segment} of job {self.job_id}"


def has_a_stage_at_work() -> Q:
    """Match documents with a running stage, even if its job has already ended."""
    return Q(Exists(Stage.objects.filter(job__document=OuterRef("pk"), status=Stage.Status.RUNNING)))


class OutsideService(models.Model):
    """The state of an external service, shared by all workers: see `documents/breakers.py`."""

    name = models.CharField(max_length=64, unique=True)
    # Set while the service does not answer or asks for a pause.
    away_since = models.DateTimeField(null=True, blank=True)
    next_try_at = models.DateTimeField(null=True, blank=True)
    # The service asked not to be called before this time.
    asked_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    message = models.TextField(blank=True, default="")
    # The claim of the stage that probes the service; valid while that stage runs under this token.
    probe_id = models.BigIntegerField(null=True, blank=True)
    probe_token = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        db_table = "outside_services"
        constraints = [
            models.CheckConstraint(
                name="service_away_has_a_next_try",
                condition=Q(away_since__isnull=True, next_try_at__isnull=True)
                | Q(away_since__isnull=False, next_try_at__isnull=False),
                violation_error_message="A service has a time for the next try only while it is unavailable.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def is_due(self) -> bool:
        return self.next_try_at is not None and self.next_try_at <= clock.now()
