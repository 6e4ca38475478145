from django.conf import settings
from django.db import models
from django.db.models import Q

from api.models.tokens import ApiToken
from work import clock
from workspaces.models import Membership, User, Workspace, visible_to


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def for_user(self, user: User) -> "AuditEntryQuerySet":
        """Return the entries of workspaces that the user administers; superusers see all."""
        return visible_to(self, user, "workspace", Membership.Role.ADMIN)

    def listed(self) -> "AuditEntryQuerySet":
        return self.select_related("workspace")


class AuditEntry(models.Model):
    """One request that could change something: who sent it, from where, for which operation, and the status of the
    response. It is written before the change, completed after it, and never changed again.
    """

    at = models.DateTimeField(default=clock.now, db_index=True)
    # The actor as in histories; the linked rows may be deleted later.
    actor = models.CharField(max_length=200, blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.SET_NULL, null=True, related_name="+")
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    method = models.CharField(max_length=16)
    # The operation of the API or the route, such as `runs.submit_run` or `admin:runs_run_changelist`. Sign-ins and
    # sign-outs have `sign_in`, `sign_in_failed`, `sign_out`.
    operation = models.CharField(max_length=200, blank=True)
    # Without the query string, which may contain secrets.
    path = models.CharField(max_length=500)
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.BigIntegerField(null=True)
    # None: no response was recorded because the process died.
    answered = models.PositiveSmallIntegerField(null=True)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        db_table = "audit_entries"
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["workspace", "id"], name="audit_entry_of_a_workspace")]
        constraints = [
            models.CheckConstraint(
                name="audit_entry_answer_is_a_status_of_http",
                condition=Q(answered__isnull=True) | Q(answered__gte=100, answered__lte=599),
                violation_error_message="A response status must be between 100 and 599.",
            ),
            models.CheckConstraint(
                name="audit_entry_subject_has_a_kind",
                condition=Q(subject_id__isnull=True) | ~Q(subject_kind=""),
                violation_error_message="A subject ID needs a subject kind.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation or self.path} by {self.actor or 'unknown'}"
