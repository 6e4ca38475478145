from datetime import datetime

from django.db import models
from django.db.models import Q

from work import clock
from work.models import Subject, SubjectQuerySet, Work, work_constraints


class JobRunQuerySet(SubjectQuerySet["JobRun"]):
    def running_since_before(self, moment: datetime) -> "JobRunQuerySet":
        return self.filter(status=JobRun.Status.RUNNING, started_at__lt=moment)


class JobRun(Work):
    """One execution of a scheduled job for one slot. A worker claims the slot by inserting this row."""

    class Status(models.TextChoices):
        RUNNING = "running"
        SUCCESS = "success"
        FAILED = "failed"
        SKIPPED_TIMEOUT = "skipped_timeout", "abandoned (timed out)"

    ACTIVE = CLAIMED = Status.RUNNING
    TERMINAL = frozenset({Status.SUCCESS, Status.FAILED, Status.SKIPPED_TIMEOUT})

    job_name = models.CharField(max_length=128)
    scheduled_for = models.DateTimeField()
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING, editable=False)
    worker_instance = models.CharField(max_length=128, null=True, blank=True)  # noqa: DJ001  # nullable by contract
    rows_processed = models.PositiveBigIntegerField(null=True, blank=True)
    # When the job run's history was replaced with one event.
    pruned_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = JobRunQuerySet.as_manager()

    class Meta:
        db_table = "job_runs"
        constraints = [
            *work_constraints(
                "job_run",
                ["running", "success", "failed", "skipped_timeout"],
                claimed="running",
                terminal=["success", "failed", "skipped_timeout"],
            ),
            models.UniqueConstraint(
                name="job_run_one_per_slot",
                fields=["job_name", "scheduled_for"],
                violation_error_message="This slot has already been claimed.",
            ),
            models.UniqueConstraint(
                name="job_run_one_running_per_job",
                fields=["job_name"],
                condition=Q(status="running"),
                violation_error_message="This job is already running.",
            ),
            models.CheckConstraint(
                name="job_run_pruned_has_ended",
                condition=Q(pruned_at__isnull=True) | Q(status__in=["failed", "skipped_timeout", "success"]),
                violation_error_message="Only a finished job run can be pruned.",
            ),
            models.CheckConstraint(
                name="job_run_was_started",
                condition=Q(started_at__isnull=False),
                violation_error_message="A job run needs a start time.",
            ),
        ]
        indexes = [
            models.Index(name="job_runs_by_status", fields=["status"]),
            models.Index(name="job_runs_by_start", fields=["started_at"]),
            models.Index(name="job_runs_expiring", fields=["lease_expires_at"], condition=Q(status="running")),
        ]

    def __str__(self) -> str:
        return f"{self.job_name} for {self.scheduled_for:%Y-%m-%d %H:%M:%S}"


class ScheduledJob(Subject):
    """The stored state of a declared job, and the subject of its history."""

    name = models.CharField(max_length=128, unique=True)
    # The schedule as declared when a worker last looked. Earlier slots may belong to an earlier declaration.
    cron = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=64)
    # Every slot up to this moment has been decided: handed to the workers, merged, dropped or skipped.
    decided_until = models.DateTimeField()
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True, default="")
    # Set when the code no longer declares the job.
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "scheduled_jobs"
        constraints = [
            models.CheckConstraint(
                name="scheduled_job_paused_by_somebody",
                condition=Q(paused_at__isnull=True, paused_by="") | (Q(paused_at__isnull=False) & ~Q(paused_by="")),
                violation_error_message="A paused job needs the name of the person who paused it.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DueSlotQuerySet(models.QuerySet["DueSlot"]):
    def claimable(self) -> "DueSlotQuerySet":
        """Return the due slots of jobs that are not running, in the order in which workers take them."""
        running = JobRun.objects.filter(status=JobRun.CLAIMED).values("job_name")
        return self.exclude(job_name__in=running).in_turn()

    def in_turn(self) -> "DueSlotQuerySet":
        """Order slots of the schedule before requested ones, so that a large backfill delays no job's schedule."""
        by_hand = models.Case(models.When(asked_by="", then=0), default=1)
        return self.order_by(by_hand, "due_at", "id")


class DueSlot(models.Model):
    """A slot that a worker should claim next, because it is due or because a person requested it."""

    job_name = models.CharField(max_length=128)
    scheduled_for = models.DateTimeField()
    due_at = models.DateTimeField(default=clock.now)
    # After this moment the slot is dropped. None for a requested slot, which has no deadline.
    expires_at = models.DateTimeField(null=True, blank=True)
    # The person who requested the slot; empty if it is due by the schedule.
    asked_by = models.CharField(max_length=200, blank=True, default="")
    # The slot that this one replaces.
    covers = models.DateTimeField(null=True, blank=True)

    objects = DueSlotQuerySet.as_manager()

    class Meta:
        db_table = "due_slots"
        constraints = [
            models.UniqueConstraint(
                name="due_slot_one_per_job_and_moment",
                fields=["job_name", "scheduled_for"],
                violation_error_message="This slot is already due.",
            ),
        ]
        indexes = [models.Index(name="due_slots_in_order", fields=["due_at", "id"])]

    def __str__(self) -> str:
        return f"{self.job_name} for {self.scheduled_for:%Y-%m-%d %H:%M:%S}"


class SchedulerLease(models.Model):
    """The single row whose holder is the only worker that looks at the schedules."""

    ONLY = 1

    owner = models.CharField(max_length=200, blank=True, default="")
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_lease"
        constraints = [
            models.CheckConstraint(
                name="scheduler_lease_is_one_row",
                condition=Q(pk=1),
                violation_error_message="The scheduler has a single lease, in row 1.",
            ),
        ]

    def __str__(self) -> str:
        return self.owner or "nobody"
