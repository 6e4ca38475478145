from typing import Any

from django.db import models
from django.db.models import Case, Exists, ExpressionWrapper, F, OuterRef, Q, Value, When

from builds.models import Build, Configuration
from documents.models import Document, User, Workspace, visible_to
from runs.models.queue import Queue
from work import clock
from work.models import SubjectQuerySet, Work, work_constraints


class RunQuerySet(SubjectQuerySet["Run"]):
    def for_user(self, user: User) -> "RunQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "RunQuerySet":
        """With what a list shows of its relations, without their large columns."""
        related = self.select_related("workspace", "configuration", "input_document")
        return related.defer("configuration__files", "configuration__requirements", "input_document__text")

    def with_outcome(self, outcome: str) -> "RunQuerySet":
        timed_out = Q(failure_type=Run.Failure.TIMED_OUT)
        if outcome == "timed_out":
            return self.filter(timed_out, status=Run.Status.FAILED)
        return self.filter(~timed_out, status=outcome)

    def live(self) -> "RunQuerySet":
        return self.filter(status__in=["queued", "running"])

    def queued(self) -> "RunQuerySet":
        return self.filter(status="queued")

    def claimable(self, now: Any) -> "RunQuerySet":
        return self.in_line().filter(*OF_THE_QUEUE.values())

    def in_line(self) -> "RunQuerySet":
        """The oldest first, of those whose build is ready and whose document is free."""
        held = Q(*map(Exists, in_the_way().values()), _connector=Q.OR)
        return self.filter(*OF_THE_RUN.values(), status="queued").filter(~held).order_by("created_at", "id")


def document_has_a_run() -> Q:
    """A document that a run is queued or running for."""
    same = Run.objects.filter(input_document=OuterRef("pk"))
    # One status at a time: so there is an index of just these rows.
    return Q(Exists(same.filter(status="queued"))) | Q(Exists(same.filter(status="running")))


# What a claim asks, part by part: `runs/why.py` asks the same of one run, each by its name.
# About no run: a database looks once, before it looks at any.
OF_THE_QUEUE = {"queue_goes_on": Q(~Exists(Queue.objects.filter(pk=Queue.ONLY, paused_at__isnull=False)))}
OF_THE_RUN = {"build_is_ready": Q(build__status="ready"), "is_open": Q(gate="")}
MUST_HOLD = OF_THE_QUEUE | OF_THE_RUN


def in_the_way() -> dict[str, RunQuerySet]:
    """The runs none of which may be there, each as a queryset about the outer run."""
    same_document = Run.objects.filter(input_document_id=OuterRef("input_document_id"))
    older = Q(created_at__lt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), pk__lt=OuterRef("pk"))
    # Said so that PostgreSQL looks up each candidate's document and nothing else: NOT (a OR b) becomes no join,
    # "another one" cannot be hashed, and a gate below "a" (none but the open one) fits no index of the queue.
    return {
        "running": same_document.filter(status="running").exclude(pk=OuterRef("pk")),
        "older": same_document.filter(older, status="queued", gate__lt="a"),
    }


# What an outcome is, and an order that the primary key does not have: see `runs/listing.py`. Only said in these very
# words are they those of an index.
OUTCOME = Case(
    When(failure_type="TIMED_OUT", then=Value("timed_out")), default=F("status"), output_field=models.CharField()
)
BACKWARDS = ExpressionWrapper(F("id") * -1, output_field=models.BigIntegerField())


class Run(Work):
    """One execution of the engine for one document with one build."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"

    OUTCOMES = (*Status.values, "timed_out")

    class Failure(models.TextChoices):
        PROCESS_TERMINATED = "PROCESS_TERMINATED", "process terminated"
        TIMED_OUT = "TIMED_OUT", "timed out"
        BUILD_FAILED = "BUILD_FAILED", "build failed"
        ENGINE_FAILED = "ENGINE_FAILED", "engine failed"
        STEP_FAILED = "STEP_FAILED", "step failed"
        REJECTED = "REJECTED", "document rejected"
        LIMIT_EXCEEDED = "LIMIT_EXCEEDED", "limit exceeded"

    class Gate(models.TextChoices):
        """Why a claim need not look at this queued run. It never decides: what the claim asks for does."""

        OPEN = "", "open"
        BUILD = "build", "waits for its build"
        DOCUMENT = "document", "waits for the run ahead of it on its document"

    ACTIVE = CLAIMED = "running"
    TERMINAL = frozenset({"succeeded", "failed", "cancelled"})

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="runs", db_index=False)
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="runs", db_index=False)
    input_document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="runs", db_index=False)
    build = models.ForeignKey(Build, on_delete=models.PROTECT, related_name="runs", db_index=False)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED, editable=False)
    gate = models.CharField(max_length=8, choices=Gate.choices, default=Gate.OPEN, blank=True, editable=False)
    cancel_requested_at = models.DateTimeField(null=True, blank=True, editable=False)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    # From then on its history is one event, and what it made is gone.
    pruned_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        db_table = "runs"
        constraints = [
            *work_constraints(
                "run",
                ["queued", "running", "succeeded", "failed", "cancelled"],
                claimed="running",
                terminal=["succeeded", "failed", "cancelled"],
            ),
            models.UniqueConstraint(
                name="run_one_running_per_document",
                fields=["input_document"],
                condition=Q(status="running"),
                violation_error_message="A run of this document is running already.",
            ),
            models.CheckConstraint(
                name="run_that_ran_was_started",
                condition=~Q(status__in=["running", "succeeded"]) | Q(started_at__isnull=False),
                violation_error_message="A run that is running or has succeeded was started.",
            ),
            models.CheckConstraint(
                name="run_failure_type_is_set_exactly_when_failed",
                condition=(Q(status="failed") & ~Q(failure_type="")) | (~Q(status="failed") & Q(failure_type="")),
                violation_error_message="A failure type is set exactly when the run has failed.",
            ),
            models.CheckConstraint(
                name="run_is_claimed_at_most_once",
                condition=Q(claim_token__lte=1),
                violation_error_message="A run is claimed at most once.",
            ),
            models.CheckConstraint(
                name="run_pruned_has_ended",
                condition=Q(pruned_at__isnull=True) | Q(status__in=["cancelled", "failed", "succeeded"]),
                violation_error_message="A run is pruned when it has ended.",
            ),
            models.CheckConstraint(
                name="run_gate_is_known",
                condition=Q(gate__in=["", "build", "document"]),
                violation_error_message="A gate is open, build or document.",
            ),
        ]
        indexes = [
            # The claim: everything that waits behind a gate is not in it.
            models.Index(name="runs_queue", fields=["created_at", "id"], condition=Q(status="queued", gate="")),
            # The next run of a document, and whether an older one waits.
            models.Index(
                name="runs_queued_of_document",
                fields=["input_document", "created_at", "id"],
                condition=Q(status="queued"),
            ),
            # The builds that somebody waits for.
            models.Index(name="runs_behind_build", fields=["build"], condition=Q(status="queued", gate="build")),
            models.Index(name="runs_expiring", fields=["lease_expires_at"], condition=Q(status="running")),
            # Few of a million; without it a list of them would walk through all that have succeeded since.
            models.Index(
                name="runs_ended_badly", fields=["status", "id"], condition=Q(status__in=["failed", "cancelled"])
            ),
            # What has ended lately, however long ago it was submitted.
            models.Index(
                name="runs_by_end", fields=["workspace", "finished_at", "id"], condition=Q(finished_at__isnull=False)
            ),
            *(
                models.Index("workspace", OUTCOME, BACKWARDS, name="runs_listed_by_workspace"),
                models.Index("configuration", OUTCOME, BACKWARDS, name="runs_listed_by_configuration"),
                models.Index("build", OUTCOME, BACKWARDS, name="runs_listed_by_build"),
                models.Index("input_document", OUTCOME, BACKWARDS, name="runs_listed_by_document"),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def outcome(self) -> str:
        """The status, but for a run that timed out."""
        return "timed_out" if self.failure_type == self.Failure.TIMED_OUT else self.status


class Admission(models.Model):
    """The guard row under which the places of a limited queue are counted."""

    class Meta:
        db_table = "run_admission"

    def __str__(self) -> str:
        return "admission of runs"


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def for_user(self, user: User) -> "ArtifactQuerySet":
        return visible_to(self, user, "run__workspace")

    def listed(self) -> "ArtifactQuerySet":
        return self.select_related("run__workspace")


class Artifact(models.Model):
    """One file that a run made."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts", db_index=False)
    name = models.CharField(max_length=255)
    file = models.CharField(max_length=500)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    content_type = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        db_table = "artifacts"
        constraints = [
            models.UniqueConstraint(
                name="artifact_name_is_unique_in_its_run",
                fields=["run", "name"],
                violation_error_message="This run has an artifact of that name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunFieldQuerySet(models.QuerySet["RunField"]):
    def for_user(self, user: User) -> "RunFieldQuerySet":
        return visible_to(self, user, "run__workspace")

    def listed(self) -> "RunFieldQuerySet":
        return self.select_related("run__workspace")


class RunField(models.Model):
    """One value that a run found, and where on the page."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="fields", db_index=False)
    # A name may come several times: this is the order in which they were found.
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    value = models.JSONField(null=True)
    confidence = models.FloatField(null=True, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    # Left, top, right, bottom, as shares of the page from its top left corner.
    box = models.JSONField(null=True, blank=True)
    step = models.CharField(max_length=100, blank=True, default="")

    objects = RunFieldQuerySet.as_manager()

    class Meta:
        db_table = "run_fields"
        constraints = [
            models.UniqueConstraint(
                name="run_field_position_is_unique_in_its_run",
                fields=["run", "position"],
                violation_error_message="This run has a field in that position.",
            ),
            models.CheckConstraint(
                name="run_field_confidence_is_a_share",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                violation_error_message="A confidence lies between 0 and 1.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"
