from typing import Any

from django.db import models
from django.db.models import Q

from builds import fingerprint
from work import clock
from work.models import SubjectQuerySet, Work, work_constraints
from workspaces.models import User, Workspace, visible_to

# The fields of a configuration that determine its builds.
CONTENTS = frozenset({"entry_point", "requirements", "files", "python_version"})


class ConfigurationQuerySet(models.QuerySet["Configuration"]):
    def update(self, **values: Any) -> int:
        # Only save() may write these fields, because it also writes their hash.
        if contents := CONTENTS & values.keys():
            raise TypeError(f"Configuration.{', '.join(sorted(contents))} is written by save() only")
        return super().update(**values)

    def for_user(self, user: User) -> "ConfigurationQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "ConfigurationQuerySet":
        """Join the tables that a list shows, and leave out large columns."""
        return self.select_related("workspace").defer("files", "requirements")


class Configuration(models.Model):
    """Rules and code for processing a document, with the packages that they require."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="configurations")
    name = models.CharField(max_length=100)
    entry_point = models.CharField(max_length=200, default="main")
    requirements = models.TextField(blank=True, default="")
    # If empty, the version that ADE itself runs on.
    python_version = models.CharField(max_length=8, blank=True, default="")
    # Path -> text. All files are in one column, so that one read sees the same version of them all.
    files = models.JSONField(default=dict, blank=True)
    # Whether runs publish their findings as fields of their document: see `runs/publishing.py`.
    publish = models.BooleanField(default=False, db_default=False)
    contents_sha256 = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ConfigurationQuerySet.as_manager()

    class Meta:
        db_table = "configurations"
        constraints = [
            models.UniqueConstraint(
                name="configuration_name_is_unique_in_its_workspace",
                fields=["workspace", "name"],
                violation_error_message="This workspace already has a configuration with this name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        self.contents_sha256 = fingerprint.of_contents(self.snapshot())
        fields = options.get("update_fields")
        if fields is not None and CONTENTS.intersection(fields):
            # Write all of these fields, because another process may have written other values than those hashed here.
            options["update_fields"] = {*fields, *CONTENTS, "contents_sha256"}
        super().save(**options)

    def snapshot(self) -> fingerprint.Snapshot:
        return {
            "entry_point": self.entry_point,
            "requirements": self.requirements,
            "python_version": self.python_version,
            "files": self.files,
        }


class BuildQuerySet(SubjectQuerySet["Build"]):
    def for_user(self, user: User) -> "BuildQuerySet":
        return visible_to(self, user, "configuration__workspace")

    def listed(self) -> "BuildQuerySet":
        """Join the tables that a list shows, and leave out large columns."""
        large = ("snapshot", "lock", "configuration__files", "configuration__requirements")
        return self.select_related("configuration__workspace").defer(*large)

    def claimable(self, now: Any) -> "BuildQuerySet":
        return self.filter(status=Build.Status.QUEUED).order_by("queued_at", "id")

    def ended(self) -> "BuildQuerySet":
        return self.filter(status__in=Build.TERMINAL)

    def unheeded(self) -> "BuildQuerySet":
        """Filter ended builds that runs may still wait for. The conditions match the index `builds_unheeded`."""
        return self.filter(awaited=True, status__in=sorted(Build.TERMINAL))


class Build(Work):
    """The work of making the environment of one configuration fingerprint. It is done once, for many runs."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        BUILDING = "building"
        READY = "ready"
        FAILED = "failed"
        CANCELLED = "cancelled"

    ACTIVE = CLAIMED = Status.BUILDING
    TERMINAL = frozenset({Status.READY, Status.FAILED, Status.CANCELLED})

    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="builds", db_index=False)
    fingerprint = models.CharField(max_length=64)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED, editable=False)
    snapshot = models.JSONField()
    queued_at = models.DateTimeField(default=clock.now, editable=False)
    # How many claims have lost their worker since a person last requested this build.
    losses = models.PositiveSmallIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True, blank=True, editable=False)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    lock = models.TextField(blank=True, default="")
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    # If False, no queued run waits for this build. Submitting a run sets it under a lock. Only `runs/gates.py` clears
    # it.
    awaited = models.BooleanField(default=True, editable=False)

    objects = BuildQuerySet.as_manager()

    class Meta:
        db_table = "builds"
        constraints = [
            *work_constraints(
                "build",
                ["queued", "building", "ready", "failed", "cancelled"],
                claimed="building",
                terminal=["ready", "failed", "cancelled"],
            ),
            models.UniqueConstraint(
                name="build_one_per_configuration_and_fingerprint",
                fields=["configuration", "fingerprint"],
                violation_error_message="This configuration already has a build with this fingerprint.",
            ),
            models.CheckConstraint(
                name="build_fingerprint_is_not_empty",
                condition=~Q(fingerprint=""),
                violation_error_message="A build needs a fingerprint.",
            ),
            models.CheckConstraint(
                name="build_failure_type_is_set_exactly_when_failed",
                condition=(Q(status="failed") & ~Q(failure_type="")) | (~Q(status="failed") & Q(failure_type="")),
                violation_error_message="Only a failed build has a failure type.",
            ),
        ]
        indexes = [
            models.Index(name="builds_queued", fields=["queued_at", "id"], condition=Q(status="queued")),
            models.Index(name="builds_expiring", fields=["lease_expires_at"], condition=Q(status="building")),
            # This index has few rows at any time. Every claim of a run uses it to check whether there are any.
            models.Index(
                name="builds_unheeded",
                fields=["id"],
                condition=Q(awaited=True, status__in=["cancelled", "failed", "ready"]),
            ),
        ]

    def __str__(self) -> str:
        return f"build {self.fingerprint[:12]} of {self.configuration}"
