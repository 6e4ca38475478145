from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value

from work import clock

# Columns that only work/lifecycle.py may write.
PROTECTED = frozenset(
    {
        "status",
        "started_at",
        "finished_at",
        "lease_owner",
        "lease_expires_at",
        "claim_token",
        "last_sequence",
        "last_event_at",
        "previous_event_at",
    }
)

T = TypeVar("T", bound=models.Model)


class SubjectQuerySet(models.QuerySet[T]):
    """Refuses to update the columns in `PROTECTED`."""

    def update(self, **values: Any) -> int:
        _refuse_protected(self.model, values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[T], fields: Iterable[str], batch_size: int | None = None) -> int:
        fields = list(fields)
        _refuse_protected(self.model, fields)
        return super().bulk_update(objs, fields, batch_size)


class Subject(models.Model):
    """A model whose rows each have a history of events."""

    # The number of the row's last event. The row's own update increments it, so that the numbers have no gaps and their
    # events are committed in order.
    last_sequence = models.PositiveIntegerField(default=0, editable=False)
    # The time of the row's last event. The same update sets it and never moves it back, so that no event is earlier
    # than its predecessor, whatever the writers' clocks say. NULL: the row is older than this column.
    last_event_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The time of the last event before the latest batch. No event of that batch is earlier.
    previous_event_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        if not self._state.adding:
            if update_fields is None:
                names = {field.name for field in self._meta.concrete_fields if not field.primary_key}
                update_fields = names - PROTECTED
            _refuse_protected(type(self), update_fields)
        super().save(update_fields=update_fields, **options)


class Work(Subject):
    """A model whose rows are claimed, done and finished. Each kind of work has its own statuses."""

    # The status of a row while its work is being done.
    ACTIVE: ClassVar[str]
    # The same as ACTIVE if workers claim this kind of work, otherwise None.
    CLAIMED: ClassVar[str | None]
    TERMINAL: ClassVar[frozenset[str]]

    created_at = models.DateTimeField(default=clock.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True, editable=False)
    lease_owner = models.CharField(max_length=200, null=True, blank=True, editable=False)  # noqa: DJ001  # NULL: free
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The fence. Every claim increments it, so that an earlier claim is never mistaken for a later one.
    claim_token = models.PositiveIntegerField(default=0, editable=False)
    # The child process that does the work, so that recovery can end it if its worker is gone.
    process = models.JSONField(null=True, blank=True, editable=False)
    failure_type = models.CharField(max_length=40, blank=True, default="")
    error_message = models.TextField(blank=True, default="")

    class Meta:
        abstract = True


def work_constraints(
    name: str, statuses: Iterable[str], *, claimed: str | None, terminal: Iterable[str]
) -> list[models.CheckConstraint]:
    """Return the constraints that every kind of work shares. Their names are sentences."""
    terminal = sorted(terminal)
    held = Q(lease_owner__isnull=False, lease_expires_at__isnull=False)
    free = Q(lease_owner__isnull=True, lease_expires_at__isnull=True)
    lease = (Q(status=claimed) & held) | (~Q(status=claimed) & free) if claimed else free
    return [
        _check(name, "status_is_known", Q(status__in=sorted(statuses)), "The status is unknown."),
        _check(name, "lease_is_set_exactly_while_claimed", lease, "Only claimed work has a lease."),
        _check(
            name,
            "finished_at_is_set_exactly_at_the_end",
            Q(status__in=terminal, finished_at__isnull=False) | (~Q(status__in=terminal) & Q(finished_at__isnull=True)),
            "Only finished work has an end time.",
        ),
        _check(
            name,
            "times_are_in_order",
            (Q(started_at__isnull=True) | Q(started_at__gte=F("created_at")))
            & (Q(finished_at__isnull=True) | Q(started_at__isnull=True) | Q(finished_at__gte=F("started_at"))),
            "Work must be created, then started, then finished.",
        ),
    ]


def _check(name: str, sentence: str, condition: Q, message: str) -> models.CheckConstraint:
    return models.CheckConstraint(name=f"{name}_{sentence}", condition=condition, violation_error_message=message)


def _refuse_protected(model: type[models.Model], names: Iterable[str]) -> None:
    if refused := PROTECTED & set(names):
        raise TypeError(
            f"{model.__name__}.{', '.join(sorted(refused))} is written by work/lifecycle.py only;"
            " call a verb of the app's lifecycle"
        )


class EventQuerySet(models.QuerySet["Event"]):
    def about(self, kind: str, id: int) -> "EventQuerySet":
        """Filter the events of one row, unordered. The query uses an index."""
        return self.filter(subject_kind=kind, subject_id=id)


class Event(models.Model):
    """One line of a row's append-only history, written in the same transaction as the change that it records."""

    subject_kind = models.CharField(max_length=16)
    subject_id = models.BigIntegerField()
    sequence = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    from_status = models.CharField(max_length=16, blank=True, default="")
    to_status = models.CharField(max_length=16, blank=True, default="")
    claim_token = models.PositiveIntegerField(default=0)
    actor = models.CharField(max_length=200, blank=True, default="")
    # A level of the logging module.
    level = models.PositiveSmallIntegerField(default=20)
    message = models.TextField(blank=True, default="")
    data = models.JSONField(null=True, blank=True)

    objects = EventQuerySet.as_manager()

    class Meta:
        db_table = "events"
        constraints = [
            models.UniqueConstraint(
                name="event_sequence_has_no_duplicates",
                fields=["subject_kind", "subject_id", "sequence"],
                violation_error_message="This subject already has an event with this number.",
            )
        ]
        indexes = [
            # A page lists only these events, and they are rare.
            models.Index(name="events_late_writes", fields=["-id"], condition=Q(kind="LATE_WRITE_REFUSED"))
        ]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject_id} #{self.sequence} {self.kind}"

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise TypeError("events are append-only")
        super().save(**options)


class WorkerQuerySet(SubjectQuerySet["Worker"]):
    def alive(self) -> "WorkerQuerySet":
        return self.filter(stopped_at__isnull=True, heartbeat_at__gte=heard_from_since())

    def available(self) -> "WorkerQuerySet":
        """Filter live workers that are not draining."""
        return self.alive().filter(drain_requested_at__isnull=True)

    def silent(self) -> "WorkerQuerySet":
        return self.filter(stopped_at__isnull=True, heartbeat_at__lt=heard_from_since())

    def stopped(self) -> "WorkerQuerySet":
        return self.filter(stopped_at__isnull=False)


class Worker(Subject):
    """One boot of a worker process."""

    name = models.CharField(max_length=100)
    host = models.CharField(max_length=100)
    # Identifies the kernel boot and pid namespace. The pid has a meaning only for processes that share both.
    machine = models.CharField(max_length=100)
    pid = models.PositiveIntegerField()
    pid_started = models.BigIntegerField()
    boot_id = models.CharField(max_length=32, unique=True)
    version = models.CharField(max_length=40)
    lanes = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)
    doing = models.JSONField(default=list, blank=True)
    # Security weaknesses of the worker's machine; see work/processes/hardening.py.
    weaknesses = models.JSONField(default=list, db_default=Value([], models.JSONField()), blank=True)
    # A drain request cannot be withdrawn. It applies to this boot only: a restarted worker claims work again.
    drain_requested_at = models.DateTimeField(null=True, blank=True, editable=False)
    drain_requested_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    drain_reason = models.TextField(blank=True, default="", editable=False)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        db_table = "workers"
        constraints = [
            models.CheckConstraint(
                name="worker_drain_requested_by_somebody",
                condition=Q(drain_requested_at__isnull=True, drain_requested_by="", drain_reason="")
                | (Q(drain_requested_at__isnull=False) & ~Q(drain_requested_by="")),
                violation_error_message="A drain needs the name of the person who asked; a reason needs a drain.",
            ),
        ]
        indexes = [models.Index(name="workers_by_heartbeat", fields=["heartbeat_at"])]

    def __str__(self) -> str:
        return self.owner

    @property
    def owner(self) -> str:
        return f"{self.name}@{self.host}:{self.pid}:{self.boot_id}"

    @property
    def state(self) -> str:
        if self.stopped_at:
            return "stopped"
        return "alive" if self.heartbeat_at >= heard_from_since() else "silent"

    @property
    def is_draining(self) -> bool:
        return self.drain_requested_at is not None and self.state == "alive"


def heard_from_since() -> datetime:
    # A worker that has not been heard from for a whole lease has lost all its claims.
    clock.keep_measured()
    return clock.now() - timedelta(seconds=settings.ADE_LEASE_SECONDS)
