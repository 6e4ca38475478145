from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

from work import clock


@dataclass(frozen=True)
class LimitedUser:
    """A person limited to one workspace and at most these roles, such as the user of an API token.

    The caller must have checked that the person is a member of the workspace. `visible_to` still checks the person's
    own roles.
    """

    person: AbstractBaseUser
    workspace_id: int
    roles: frozenset[str]


Person = AbstractBaseUser | AnonymousUser
User = Person | LimitedUser
Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


def visible_to(rows: Rows, user: User, path: str, *roles: str) -> Rows:
    """Return the rows in workspaces where the user is a member. If roles are given, the user must have one of them.

    `path` is the lookup from a row to its workspace.
    """
    if isinstance(user, LimitedUser):
        rows = rows.filter(**{path: user.workspace_id})
        if not roles:
            return rows
        return visible_to(rows, user.person, path, *roles) if user.roles.intersection(roles) else rows.none()
    if getattr(user, "is_superuser", False) and user.is_active:
        return rows
    if user.pk is None:
        # An anonymous user is no member of any workspace.
        return rows.none()
    memberships = Membership.objects.filter(user_id=user.pk, **({"role__in": roles} if roles else {}))
    # Use a subquery. With a join, query planners start from the memberships and sort a million rows to show the last
    # fifty.
    return rows.filter(**{f"{path}__in": memberships.values("workspace_id")})


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
    """A tenant: every document, configuration and membership belongs to one."""

    name = models.CharField(max_length=100, unique=True)
    # How many days the contents of documents are kept; None means for ever.
    document_retention_days = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        db_table = "workspaces"
        constraints = [
            models.CheckConstraint(
                name="workspace_keeps_documents_for_a_day_or_more",
                condition=Q(document_retention_days__isnull=True) | Q(document_retention_days__gte=1),
                violation_error_message="Keep documents for at least one day; leave this empty to keep them forever.",
            ),
        ]

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
                violation_error_message="This user is already a member of this workspace.",
            ),
            models.CheckConstraint(
                name="membership_role_is_known",
                condition=Q(role__in=["viewer", "operator", "admin"]),
                violation_error_message="Unknown role. Known roles: viewer, operator, admin.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.workspace}"
