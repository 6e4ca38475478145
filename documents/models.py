from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import F, Q

from work import clock
from work.models import Subject, SubjectQuerySet, Work, work_constraints

User = AbstractBaseUser | AnonymousUser
Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


def visible_to(rows: Rows, user: User, path: str, *roles: str) -> Rows:
    """Those in workspaces of this person, in one of these roles if any are given; `path` leads there from a row."""
    if getattr(user, "is_superuser", False) and user.is_active:
        return rows
    if user.pk is None:
        # Asked for nobody, a filter would answer with what has no members at all.
        return rows.none()
    mine = Membership.objects.filter(user_id=user.pk, **({"role__in": roles} if roles else {}))
    # No join: from there databases begin, and sort a million rows to show the last fifty.
    return rows.filter(**{f"{path}__in": mine.values("workspace_id")})


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def for_user(self, user: User) -> "WorkspaceQuerySet":
        return visible_to(self, user, "pk")

    def listed(self) -> "WorkspaceQuerySet":
        return self

    def operated_by(self, user: User) -> "WorkspaceQuerySet":
        return visible_to(self, user, "pk", Membership.Role.OPERATOR, Membership.Role.ADMIN)

    def administered_by(self, user: User) -> "WorkspaceQuerySet":
        return visible_to(self, user, "pk", Membership.Role.ADMIN)


class Workspace(models.Model):
    """The tenant."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        db_table = "workspaces"

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    class Role(models.TextChoices):
        VIEWER = "viewer"
        OPERATOR = "operator"
        ADMIN = "admin"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        db_table = "memberships"
        constraints = [
            models.UniqueConstraint(
                name="membership_one_per_workspace_and_user",
                fields=["workspace", "user"],
                violation_error_message="This person is a member of this workspace already.",
            ),
            models.CheckConstraint(
                name="membership_role_is_known",
                condition=Q(role__in=["viewer", "operator", "admin"]),
                violation_error_message="A role is viewer, operator or admin.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.workspace}"


class DocumentQuerySet(SubjectQuerySet["Document"]):
    def for_user(self, user: User) -> "DocumentQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "DocumentQuerySet":
        """With what a list shows, and without large columns."""
        return self.select_related("workspace").defer("text", "embedding")


class Document(Subject):
    """One stored file, with what was extracted from it."""

    class Status(models.TextChoices):
        PROCESSING = "processing"
        PROCESSED = "processed"
        FAILED = "failed"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="documents", db_index=False)
    name = models.CharField(max_length=255)
    file = models.FileField(max_length=255, blank=True)
    content_type = models.CharField(max_length=100)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PROCESSING, editable=False)
    pages = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField(blank=True, default="")
    # The mean of those of its chunks, and by which model: vectors of two are never compared.
    embedding = models.BinaryField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        db_table = "documents"
        constraints = [
            models.CheckConstraint(
                name="document_status_is_known",
                condition=Q(status__in=["failed", "processed", "processing"]),
                violation_error_message="The status is not a word of documents.",
            ),
        ]
        indexes = [
            models.Index(name="documents_of_workspace", fields=["workspace", "-created_at", "-id"]),
            models.Index(name="documents_by_content", fields=["workspace", "sha256"]),
            # The sweeper asks which of some files are named.
            models.Index(name="documents_by_file", fields=["file"]),
        ]

    def __str__(self) -> str:
        return self.name


class DocumentChunkQuerySet(models.QuerySet["DocumentChunk"]):
    def for_user(self, user: User) -> "DocumentChunkQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentChunkQuerySet":
        return self.select_related("document__workspace").defer("embedding", "document__text", "document__embedding")


class DocumentChunk(models.Model):
    """A piece of a document's text that is about one thing, with its meaning as a vector."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    position = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    embedding = models.BinaryField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")

    objects = DocumentChunkQuerySet.as_manager()

    class Meta:
        db_table = "document_chunks"
        constraints = [
            models.UniqueConstraint(
                name="chunk_position_is_unique_in_its_document",
                fields=["document", "position"],
                violation_error_message="This document has a chunk in that position.",
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.position} of document {self.document_id}"


class DocumentProcessingJobQuerySet(SubjectQuerySet["DocumentProcessingJob"]):
    def for_user(self, user: User) -> "DocumentProcessingJobQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentProcessingJobQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")

    def live(self) -> "DocumentProcessingJobQuerySet":
        return self.filter(status__in=["PENDING", "PROCESSING"])

    def claimable(self, now: Any) -> "DocumentProcessingJobQuerySet":
        return self.filter(status="PENDING", next_attempt_at__lte=now).order_by("next_attempt_at", "id")


class DocumentProcessingJob(Work):
    """The work of extracting one document. Nobody holds it: its stages are held."""

    class Status(models.TextChoices):
        PENDING = "PENDING"
        PROCESSING = "PROCESSING"
        COMPLETED = "COMPLETED"
        FAILED = "FAILED"

    ACTIVE = "PROCESSING"
    CLAIMED = None
    TERMINAL = frozenset({"COMPLETED", "FAILED"})

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="jobs")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=3)
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
                violation_error_message="This document is being processed already.",
            ),
            models.CheckConstraint(
                name="job_completed_at_is_set_exactly_when_completed",
                condition=Q(status="COMPLETED", completed_at__isnull=False)
                | (~Q(status="COMPLETED") & Q(completed_at__isnull=True)),
                violation_error_message="The time of completion is set exactly when the job is completed.",
            ),
            models.CheckConstraint(
                name="job_attempts_stay_within_the_limit",
                condition=Q(attempts__gte=0, attempts__lte=F("max_attempts")),
                violation_error_message="A job has no more attempts than its limit.",
            ),
            models.CheckConstraint(
                name="job_failure_leaves_an_error_log",
                condition=~Q(status="FAILED") | ~Q(error_log=""),
                violation_error_message="A failed job says why.",
            ),
        ]
        indexes = [
            models.Index(name="jobs_pending", fields=["next_attempt_at", "id"], condition=Q(status="PENDING")),
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
        # Not those of a job that was given back or has failed meanwhile: its next attempt lays them out anew.
        return self.filter(status="READY", job__status="PROCESSING").order_by("created_at", "id")

    def unfinished(self) -> "StageQuerySet":
        return self.exclude(status="DONE")


class Stage(Work):
    """One step of a processing job, or one page range of it. Claimed under a lease."""

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

    ACTIVE = CLAIMED = "RUNNING"
    TERMINAL = frozenset({"DONE", "ERROR"})

    job = models.ForeignKey(DocumentProcessingJob, on_delete=models.CASCADE, related_name="stages")
    name = models.CharField(max_length=16, choices=Name.choices)
    segment = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.NEW, editable=False)
    # Claims that ended with the loss of their worker, in this attempt of the job.
    losses = models.PositiveSmallIntegerField(default=0)

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
                violation_error_message="This job has that stage already.",
            ),
            models.CheckConstraint(
                name="stage_name_is_known",
                condition=Q(name__in=["embed", "extract", "publish"]),
                violation_error_message="A stage is extract, embed or publish.",
            ),
        ]
        indexes = [
            models.Index(name="stages_ready", fields=["created_at", "id"], condition=Q(status="READY")),
            models.Index(name="stages_expiring", fields=["lease_expires_at"], condition=Q(status="RUNNING")),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.segment} of job {self.job_id}"
