"""Rows that only pages use; the processing of work doesn't read them."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from work import clock
from workspaces.models import User, Workspace, visible_to


class Visit(models.Model):
    """Up to which moment a user has seen the news, and when the user last confirmed this."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visit")
    # Later news is new to the user.
    looked_until = models.DateTimeField(default=clock.now)
    last_seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "visits"
        constraints = [
            models.CheckConstraint(
                name="visit_looks_back",
                condition=Q(looked_until__lte=models.F("last_seen_at")),
                violation_error_message="A user cannot have seen events from after their last visit.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person} until {self.looked_until:%Y-%m-%d %H:%M:%S}"


class FailureNoteQuerySet(models.QuerySet["FailureNote"]):
    def for_user(self, user: User) -> "FailureNoteQuerySet":
        return visible_to(self, user, "workspace")


class FailureNote(models.Model):
    """A note about failures with one cause, for the next person who meets such a failure."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="failure_notes")
    # The key of the cause: see `console/causes.py`.
    cause = models.CharField(max_length=64)
    text = models.TextField()
    written_by = models.CharField(max_length=200)
    written_at = models.DateTimeField(default=clock.now)

    objects = FailureNoteQuerySet.as_manager()

    class Meta:
        db_table = "failure_notes"
        constraints = [
            models.UniqueConstraint(
                name="failure_note_one_per_workspace_and_cause",
                fields=["workspace", "cause"],
                violation_error_message="This failure already has a note in this workspace.",
            ),
            models.CheckConstraint(
                name="failure_note_says_something",
                condition=~Q(text=""),
                violation_error_message="A note cannot be empty; delete it instead.",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class PromiseCheck(models.Model):
    """The last check of an invariant, and its result: see `console/invariants.py`."""

    name = models.CharField(max_length=100, unique=True)
    # When the running check started; None if none is running.
    began_at = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    # The time of the last complete check; None if there was none. The next three columns describe this check.
    checked_at = models.DateTimeField(null=True, blank=True)
    checked_by = models.CharField(max_length=200, blank=True, default="")
    seconds = models.FloatField(default=0)
    # The first rows that break the invariant, as [kind, id].
    offenders = models.JSONField(default=list, blank=True)
    # Why the last attempt failed; empty if it succeeded.
    trouble = models.TextField(blank=True, default="")

    class Meta:
        db_table = "promise_checks"
        constraints = [
            models.CheckConstraint(
                name="promise_check_took_its_time",
                condition=Q(seconds__gte=0),
                violation_error_message="The duration of a check cannot be negative.",
            ),
        ]

    def __str__(self) -> str:
        return self.name
