from typing import Any

from django.db import models
from django.db.models import Case, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact, IsNull

from builds.models import Build, Configuration
from documents.models import Document
from work import clock
from work.models import Subject, SubjectQuerySet, Work, work_constraints
from workspaces.models import User, Workspace, visible_to


class RunQuerySet(SubjectQuerySet["Run"]):
    def for_user(self, user: User) -> "RunQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "RunQuerySet":
        """Load the related rows that a list shows, without their large columns."""
        related = self.select_related("workspace", "configuration", "input_document")
        return related.defer("configuration__files", "configuration__requirements", "input_document__text")

    def with_outcome(self, outcome: str) -> "RunQuerySet":
        timed_out = Q(failure_type=Run.Failure.TIMED_OUT)
        if outcome == "timed_out":
            return self.filter(timed_out, status=Run.Status.FAILED)
        return self.filter(~timed_out, status=outcome)

    def live(self) -> "RunQuerySet":
        return self.filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING])

    def queued(self) -> "RunQuerySet":
        return self.filter(status=Run.Status.QUEUED)

    def claimable(self, now: Any) -> "RunQuerySet":
        return self.in_line().filter(*OF_THE_QUEUE.values())

    def in_line(self) -> "RunQuerySet":
        """Return the queued runs with an open gate, a ready build and a free document, oldest first, even during a
        pause.
        """
        free = [IsNull(first_of(rows), True) for rows in in_the_way().values()]
        return self.filter(*OF_THE_RUN.values(), *free, status=Run.Status.QUEUED).order_by("created_at", "id")


# The outcome of a run, and its negated id: an order for lists that the primary key does not provide (see
# `runs/listing.py`). The indexes below are used only for exactly these expressions.
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
        DOCUMENT_FAILED = "DOCUMENT_FAILED", "document could not be processed"
        REJECTED = "REJECTED", "document rejected"
        LIMIT_EXCEEDED = "LIMIT_EXCEEDED", "limit exceeded"

    class Gate(models.TextChoices):
        """The reason why claims skip this queued run. An open gate admits no run: the claim still checks all
        conditions.
        """

        OPEN = "", "open"
        BUILD = "build", "waiting for its build"
        DOCUMENT = "document", "waiting for an earlier run of its document"
        PROCESSING = "process", "waiting until its document is processed"
        # A worker will end the run as failed, even if the document is processed again meanwhile.
        FAILED = "failed", "its document could not be processed"

    ACTIVE = CLAIMED = Status.RUNNING
    TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="runs", db_index=False)
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="runs", db_index=False)
    input_document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="runs", db_index=False)
    build = models.ForeignKey(Build, on_delete=models.PROTECT, related_name="runs", db_index=False)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED, editable=False)
    gate = models.CharField(max_length=8, choices=Gate.choices, default=Gate.OPEN, blank=True, editable=False)
    # Whether the run starts only when its document is processed. The database's default is for processes of an older
    # version, whose runs do not wait.
    waits_for_processing = models.BooleanField(default=True, db_default=False, editable=False)
    # Whether its findings become fields of its document: what its configuration said when the run was submitted.
    publishes = models.BooleanField(default=False, db_default=False, editable=False)
    cancel_requested_at = models.DateTimeField(null=True, blank=True, editable=False)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    # When the run's history was replaced with one event and its artifacts were deleted.
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
                violation_error_message="Another run of this document is already running.",
            ),
            models.CheckConstraint(
                name="run_that_ran_was_started",
                condition=~Q(status__in=["running", "succeeded"]) | Q(started_at__isnull=False),
                violation_error_message="A running or succeeded run needs a start time.",
            ),
            models.CheckConstraint(
                name="run_failure_type_is_set_exactly_when_failed",
                condition=(Q(status="failed") & ~Q(failure_type="")) | (~Q(status="failed") & Q(failure_type="")),
                violation_error_message="Only a failed run has a failure type.",
            ),
            models.CheckConstraint(
                name="run_is_claimed_at_most_once",
                condition=Q(claim_token__lte=1),
                violation_error_message="A run can be claimed only once.",
            ),
            models.CheckConstraint(
                name="run_pruned_has_ended",
                condition=Q(pruned_at__isnull=True) | Q(status__in=["cancelled", "failed", "succeeded"]),
                violation_error_message="Only a finished run can be pruned.",
            ),
            models.CheckConstraint(
                name="run_gate_is_known",
                condition=Q(gate__in=["", "build", "document", "failed", "process"]),
                violation_error_message="Unknown gate. Known gates: open, build, document, process, failed.",
            ),
        ]
        indexes = [
            # Used by the claim. Runs with a shut gate are left out.
            models.Index(name="runs_queue", fields=["created_at", "id"], condition=Q(status="queued", gate="")),
            # Finds the next run of a document, and older runs that wait. Runs that wait for their build are left out,
            # because a hundred thousand of them could come first at every lookup.
            models.Index(
                name="runs_in_turn_of_document",
                fields=["input_document", "created_at", "id"],
                condition=Q(status="queued", gate__in=["", "document"]),
            ),
            # Finds the builds that runs wait for.
            models.Index(name="runs_behind_build", fields=["build"], condition=Q(status="queued", gate="build")),
            # Finds a document's runs that wait for a build.
            models.Index(
                name="runs_behind_build_of_document",
                fields=["input_document", "build", "created_at", "id"],
                condition=Q(status="queued", gate="build"),
            ),
            # Finds a document's runs that wait until it is processed.
            models.Index(
                name="runs_behind_processing",
                fields=["input_document", "created_at", "id"],
                condition=Q(status="queued", gate="process"),
            ),
            # Finds the runs that are about to fail, because their document could not be processed.
            models.Index(
                name="runs_of_failed_document",
                fields=["input_document", "id"],
                condition=Q(status="queued", gate="failed"),
            ),
            models.Index(name="runs_expiring", fields=["lease_expires_at"], condition=Q(status="running")),
            # Failed and cancelled runs are few among millions. Without this index, a list of them would read all runs
            # that succeeded since.
            models.Index(
                name="runs_ended_badly", fields=["status", "id"], condition=Q(status__in=["failed", "cancelled"])
            ),
            # Finds runs that ended recently, however long ago they were submitted.
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
        """The status, or "timed_out" for a run that timed out."""
        return "timed_out" if self.failure_type == self.Failure.TIMED_OUT else self.status


class Queue(Subject):
    """The single row that records whether the queue is paused. The first pause creates it."""

    ONLY = 1

    paused_at = models.DateTimeField(null=True, blank=True, editable=False)
    paused_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    pause_reason = models.TextField(blank=True, default="", editable=False)

    class Meta:
        db_table = "run_queue"
        verbose_name = "queue of runs"
        verbose_name_plural = "queue of runs"
        constraints = [
            models.CheckConstraint(
                name="queue_is_one_row",
                condition=Q(pk=1),
                violation_error_message="There is a single run queue, in row 1.",
            ),
            models.CheckConstraint(
                name="queue_paused_by_somebody",
                condition=Q(paused_at__isnull=True, paused_by="", pause_reason="")
                | (Q(paused_at__isnull=False) & ~Q(paused_by="")),
                violation_error_message="A pause needs the name of the person who paused; a reason needs a pause.",
            ),
        ]

    def __str__(self) -> str:
        return "queue of runs"


class Admission(models.Model):
    """The row that submissions lock while they count the free places of a queue that has a limit."""

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
    """One file that a run produced."""

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
                violation_error_message="This run already has an artifact with this name.",
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
    """One value that a run reported, and its place on the page."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="fields", db_index=False)
    # The order in which the engine reported the fields, because several may have the same name.
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    value = models.JSONField(null=True)
    confidence = models.FloatField(null=True, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    # Left, top, right and bottom edge: fractions of the page, measured from its top left corner.
    box = models.JSONField(null=True, blank=True)
    step = models.CharField(max_length=100, blank=True, default="")

    objects = RunFieldQuerySet.as_manager()

    class Meta:
        db_table = "run_fields"
        constraints = [
            models.UniqueConstraint(
                name="run_field_position_is_unique_in_its_run",
                fields=["run", "position"],
                violation_error_message="This run already has a field at this position.",
            ),
            models.CheckConstraint(
                name="run_field_confidence_is_a_share",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                violation_error_message="A confidence must be between 0 and 1.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


def document_has_a_run() -> Q:
    """Return the condition for documents with a queued or running run."""
    same = Run.objects.filter(input_document=OuterRef("pk"))
    # Use one status and one kind of gate per query, so that a partial index applies.
    queued = same.filter(status=Run.Status.QUEUED)
    waiting = Q(Exists(queued.filter(gate__in=IN_TURN)))
    for gate in (Run.Gate.BUILD, Run.Gate.PROCESSING, Run.Gate.FAILED):
        waiting |= Q(Exists(queued.filter(gate=gate)))
    return waiting | Q(Exists(same.filter(status=Run.Status.RUNNING)))


def _status_of_document() -> Subquery:
    # A subquery and no join, so that every plan looks it up for one run at a time.
    return Subquery(Document.objects.filter(pk=OuterRef("input_document_id")).values("status")[:1])


# The conditions of a claim, by name; `runs/why.py` checks each of them for a single run. OF_THE_QUEUE refers to no run,
# so a database evaluates it once per query.
OF_THE_QUEUE = {"queue_goes_on": Q(~Exists(Queue.objects.filter(pk=Queue.ONLY, paused_at__isnull=False)))}
OF_THE_RUN = {
    "build_is_ready": Q(build__status=Build.Status.READY),
    "is_open": Q(gate=Run.Gate.OPEN),
    "document_is_processed": Q(waits_for_processing=False)
    | Q(Exact(_status_of_document(), Document.Status.PROCESSED.value)),
}
MUST_HOLD = OF_THE_QUEUE | OF_THE_RUN
# The gates of runs that wait neither for their build nor for processing. The index `runs_in_turn_of_document` has the
# same list in its condition.
IN_TURN = [Run.Gate.OPEN, Run.Gate.DOCUMENT]


def in_the_way() -> dict[str, "QuerySet[Any]"]:
    """Return, by name, subqueries for what blocks the outer run; a claim needs all of them to be empty. `first` is the
    id of the blocking run.
    """
    same_document = Run.objects.filter(input_document_id=OuterRef("input_document_id")).annotate(first=F("pk"))
    in_turn = same_document.filter(status=Run.Status.QUEUED, gate__in=IN_TURN).order_by("created_at", "id")
    # Ended builds, each with the document's oldest earlier run whose gate is still shut. Usually no build matches, so
    # no run is read.
    created_at, id = OuterRef(OuterRef("created_at")), OuterRef(OuterRef("pk"))
    of_build = Run.objects.filter(input_document_id=OuterRef(OuterRef("input_document_id")), build=OuterRef("pk"))
    # The first condition is redundant, but lets the index exclude all later runs.
    older = of_build.filter(created_at__lte=created_at).filter(Q(created_at__lt=created_at) | Q(pk__lt=id))
    older = older.filter(status=Run.Status.QUEUED, gate=Run.Gate.BUILD).order_by("created_at", "id")
    ended_builds = Build.objects.unheeded().annotate(first=Subquery(older.values("pk")[:1]))
    # The document if it is processed, with its oldest earlier run whose gate is still shut. A document that is not
    # processed has no such run: younger runs may pass those that wait for it.
    waiting = Run.objects.filter(input_document=OuterRef("pk"), status=Run.Status.QUEUED, gate=Run.Gate.PROCESSING)
    waiting = waiting.order_by("created_at", "id")
    earlier, same_moment = waiting.filter(created_at__lt=created_at), waiting.filter(created_at=created_at, pk__lt=id)
    processed = Document.objects.filter(pk=OuterRef("input_document_id"), status=Document.Status.PROCESSED).annotate(
        first=Coalesce(Subquery(earlier.values("pk")[:1]), Subquery(same_moment.values("pk")[:1]))
    )
    return {
        "running": same_document.filter(status=Run.Status.RUNNING).exclude(pk=OuterRef("pk")),
        # Two subqueries, so that each is a single index lookup even if thousands of runs were created at the same
        # moment.
        "older": in_turn.filter(created_at__lt=OuterRef("created_at")),
        "older_of_same_moment": in_turn.filter(created_at=OuterRef("created_at"), pk__lt=OuterRef("pk")),
        "older_of_ended_build": ended_builds.filter(first__isnull=False).order_by("pk"),
        "older_of_processed_document": processed.filter(first__isnull=False).order_by("pk"),
    }


def first_of(rows: "QuerySet[Any]") -> Subquery:
    """Return a subquery for the first blocking run of a queryset from `in_the_way`.

    EXISTS would be slow: PostgreSQL assumes that any plan finds a match early. Only the ordering, which an index
    provides, keeps it from reading all waiting runs.
    """
    return Subquery(rows.values("first")[:1])
