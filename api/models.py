from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Q, Subquery

from work import clock
from workspaces.models import LimitedUser, Membership, User, Workspace, visible_to


class Scope(models.TextChoices):
    """What a token may be used for. A token never grants more than its owner's permissions."""

    READ = "read", "read: reading, which every token can do"
    OPERATE = "operate", "operate: upload, submit, cancel, run again, correct"
    ADMIN = "admin", "admin: everything that admins of the workspace do"
    INSTALLATION = "installation", "installation: manage the jobs, feeds and queue that all workspaces share"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def for_user(self, user: User) -> "ApiTokenQuerySet":
        """Return the user's own tokens, and all tokens of workspaces that the user administers."""
        person = user.person if isinstance(user, LimitedUser) else user
        own = visible_to(self, user, "workspace").filter(user_id__in=[person.pk])
        return own | visible_to(self, user, "workspace", Membership.Role.ADMIN)

    def listed(self) -> "ApiTokenQuerySet":
        return self.select_related("workspace", "user")

    def with_roles(self) -> "ApiTokenQuerySet":
        """Annotate each token with `role`, its owner's current role in the workspace, which `role_now` needs."""
        memberships = Membership.objects.filter(workspace_id=OuterRef("workspace_id"), user_id=OuterRef("user_id"))
        return self.annotate(role=Subquery(memberships.values("role")[:1]))

    def not_revoked(self) -> "ApiTokenQuerySet":
        return self.filter(revoked_at__isnull=True)

    def usable(self) -> "ApiTokenQuerySet":
        return self.not_revoked().filter(Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now()))


class ApiToken(models.Model):
    """A token with which a program authenticates, instead of a password. It belongs to one person and one workspace.
    Only the hash of its text is stored.
    """

    class State(models.TextChoices):
        USABLE = "usable"
        EXPIRED = "expired"
        REVOKED = "revoked"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    # The beginning of the token's text, by which people recognise the token and the API looks it up.
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    sha256 = models.CharField(max_length=64, editable=False)
    # Values of Scope; reading is always included.
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    created_by = models.CharField(max_length=200, editable=False)
    # The token that created this one. If it is revoked, this one is revoked too.
    made_with = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, editable=False, related_name="made")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    # Updated at most once a minute.
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_from = models.CharField(max_length=64, blank=True, default="", editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        db_table = "api_tokens"
        verbose_name = "token"
        constraints = [
            models.UniqueConstraint(
                name="api_token_name_is_unique_among_those_of_a_person",
                fields=["workspace", "user", "name"],
                condition=Q(revoked_at__isnull=True),
                violation_error_message="This user already has a token with this name in this workspace.",
            ),
            models.CheckConstraint(
                name="api_token_revoked_by_somebody",
                condition=Q(revoked_at__isnull=True, revoked_by="") | (Q(revoked_at__isnull=False) & ~Q(revoked_by="")),
                violation_error_message="A revoked token needs the name of the person who revoked it.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> "ApiToken.State":
        if self.revoked_at:
            return self.State.REVOKED
        return self.State.EXPIRED if self.expires_at and self.expires_at <= clock.now() else self.State.USABLE

    @property
    def role_now(self) -> str | None:
        """Return the owner's current role, or None if the owner is inactive or not a member. The token must have been
        loaded with `with_roles`.
        """
        if not self.user.is_active:
            return None
        role: str | None = Membership.Role.ADMIN if self.user.is_superuser else getattr(self, "role")  # noqa: B009
        return role

    def allows(self, scope: Any) -> bool:
        return scope == Scope.READ or scope in self.scopes


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def for_user(self, user: User) -> "AuditEntryQuerySet":
        """Return the entries of workspaces that the user administers; superusers see all."""
        return visible_to(self, user, "workspace", Membership.Role.ADMIN)

    def listed(self) -> "AuditEntryQuerySet":
        return self.select_related("workspace")


class AuditEntry(models.Model):
    """The audit entry of one request that could change something: its sender, origin and operation, and the status of
    the response. The entry is written before the change, completed after it, and never changed again.
    """

    at = models.DateTimeField(default=clock.now, db_index=True)
    # The same name as in histories. Stored as text, because the linked person and token may be deleted later.
    actor = models.CharField(max_length=200, blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.SET_NULL, null=True, related_name="+")
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    method = models.CharField(max_length=16)
    # The API operation or the route, such as `runs.submit_run` or `admin:runs_run_changelist`. For sign-ins and
    # sign-outs: `sign_in`, `sign_in_failed` or `sign_out`.
    operation = models.CharField(max_length=200, blank=True)
    # The query string is not stored, because it may contain secrets.
    path = models.CharField(max_length=500)
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.BigIntegerField(null=True)
    # The status of the response. None: the process died before it recorded a response.
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


class KeptAnswer(models.Model):
    """The response to a request that created something, saved in the same transaction as the created rows. A client
    that did not receive the response can repeat the request with the same key to get it.
    """

    # For example "token 3" or "user 5".
    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    # Hash of method, path and body.
    fingerprint = models.CharField(max_length=64)
    answered = models.PositiveSmallIntegerField()
    body = models.TextField()
    created_at = models.DateTimeField(default=clock.now, db_index=True)

    class Meta:
        db_table = "api_kept_answers"
        constraints = [
            models.UniqueConstraint(
                name="kept_answer_one_per_caller_and_key",
                fields=["caller", "key"],
                violation_error_message="This key has already been used.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"
