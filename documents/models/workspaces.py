from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

from work import clock


@dataclass(frozen=True)
class Narrowed:
    """Somebody who is known to be a member, but in one workspace only, and with no more than these roles: whoever comes
    with a token. What the person may there is still asked.
    """

    person: AbstractBaseUser
    workspace_id: int
    roles: frozenset[str]


Person = AbstractBaseUser | AnonymousUser
User = Person | Narrowed
Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


def visible_to(rows: Rows, user: User, path: str, *roles: str) -> Rows:
    """Those in workspaces of this person, in one of these roles if any are given; `path` leads there from a row."""
    if isinstance(user, Narrowed):
        there = rows.filter(**{path: user.workspace_id})
        if not roles:
            return there
        return visible_to(there, user.person, path, *roles) if user.roles.intersection(roles) else rows.none()
    if getattr(user, "is_superuser", False) and user.is_active:
        return rows
    if user.pk is None:
        # Asked for nobody, a filter would answer with what has no members at all.
        return rows.none()
    mine = Membership.objects.filter(user_id=user.pk, **({"role__in": roles} if roles else {}))
    # No join: from there databases begin, and sort a million rows to show the last fifty.
    return rows.filter(**{f"{path}__in": mine.values("workspace_id")})


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
    """The tenant."""

    name = models.CharField(max_length=100, unique=True)
    # How long what its documents hold is kept. None: for ever.
    document_retention_days = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        db_table = "workspaces"
        constraints = [
            models.CheckConstraint(
                name="workspace_keeps_documents_for_a_day_or_more",
                condition=Q(document_retention_days__isnull=True) | Q(document_retention_days__gte=1),
                violation_error_message="Documents are kept for at least one day, or for ever.",
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
                violation_error_message="This person is a member of this workspace already.",
            ),
            models.CheckConstraint(
                name="membership_role_is_known",
                condition=Q(role__in=["viewer", "operator", "admin"]),
                violation_error_message="A role is viewer, operator or admin.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.workspace}"
