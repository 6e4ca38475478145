"""What pages remember of the people who look at them. Nothing here is work, and nothing decides about work."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from documents.models import User, Workspace, visible_to
from work import clock


class Visit(models.Model):
    """Up to when somebody has looked at what is new, and since when they look now."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visit")
    # What came after it is new to them.
    looked_until = models.DateTimeField(default=clock.now)
    last_seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "visits"
        constraints = [
            models.CheckConstraint(
                name="visit_looks_back",
                condition=Q(looked_until__lte=models.F("last_seen_at")),
                violation_error_message="Nobody has looked further than to when they were last here.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person} until {self.looked_until:%Y-%m-%d %H:%M:%S}"


class FailureNoteQuerySet(models.QuerySet["FailureNote"]):
    def for_user(self, user: User) -> "FailureNoteQuerySet":
        return visible_to(self, user, "workspace")


class FailureNote(models.Model):
    """What people know of failures of one cause, so that the next one need not find out."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="failure_notes")
    # The hash of the cause, as `console/families.py` words it.
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
                violation_error_message="This cause has a note in this workspace already.",
            ),
            models.CheckConstraint(
                name="failure_note_says_something",
                condition=~Q(text=""),
                violation_error_message="A note says something; one that says nothing is removed.",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class PromiseCheck(models.Model):
    """When a promise was last looked at, and what was found: see `console/promises.py`."""

    name = models.CharField(max_length=100, unique=True)
    # None: nobody is at it.
    began_at = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    # None: it was never looked at to the end. What follows is of that time.
    checked_at = models.DateTimeField(null=True, blank=True)
    checked_by = models.CharField(max_length=200, blank=True, default="")
    seconds = models.FloatField(default=0)
    # The first that break it: [kind, id].
    offenders = models.JSONField(default=list, blank=True)
    # Why nothing came of it when it was last tried.
    trouble = models.TextField(blank=True, default="")

    class Meta:
        db_table = "promise_checks"
        constraints = [
            models.CheckConstraint(
                name="promise_check_took_its_time",
                condition=Q(seconds__gte=0),
                violation_error_message="No check takes less than no time.",
            ),
        ]

    def __str__(self) -> str:
        return self.name
