"""Admin base classes that show users the rows of their own workspaces and offer the actions that their roles allow."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from work.operations.admin import LongListAdmin, VerbAdmin
from work.operations.ids import id_of
from workspaces.models import Workspace

# The largest number of choices in a filter; people find other rows by searching.
MOST_CHOICES = 100


class Roles:
    """The roles of the user, cached because the menu asks for them once per list."""

    def __init__(self, request: HttpRequest) -> None:
        self._user = request.user

    @cached_property
    def is_member(self) -> bool:
        return Workspace.objects.for_user(self._user).exists()

    @cached_property
    def is_operator(self) -> bool:
        return Workspace.objects.operated_by(self._user).exists()

    @cached_property
    def is_admin(self) -> bool:
        return Workspace.objects.administered_by(self._user).exists()


def roles_of(request: HttpRequest) -> Roles:
    """Return the user's roles in any workspace, computed once per request."""
    if not hasattr(request, "_roles"):
        request._roles = Roles(request)  # type: ignore[attr-defined]  # cached on the request
    roles: Roles = request._roles  # type: ignore[attr-defined]
    return roles


class NamedFilter(admin.SimpleListFilter):
    """Filters a list by a related row.

    The filter offers the first MOST_CHOICES related rows by name. The URL may choose any other row by its ID, and the
    filter then offers that row too.
    """

    # The lookup from a listed row to the related row.
    path: str

    def named(self, request: HttpRequest) -> "QuerySet[Any]":
        """Return the related rows that this user may see."""
        raise NotImplementedError

    def offered(self, request: HttpRequest) -> "QuerySet[Any]":
        return self.named(request)

    def has_output(self) -> bool:
        # Show the filter while a value is set, even without choices. Otherwise the list would look unfiltered.
        return bool(self.lookup_choices or self.value())

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        choices = dict(self.offered(request).order_by("name", "pk").values_list("pk", "name")[:MOST_CHOICES])
        if (chosen := id_of(self.value())) and chosen not in choices:
            choices |= dict(self.named(request).filter(pk=chosen).values_list("pk", "name"))
        return [(str(id), name) for id, name in choices.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if not self.value():
            return queryset
        # An invalid value must match nothing: an unfiltered list could lead to an action on all rows.
        return queryset.filter(**{self.path: chosen}) if (chosen := id_of(self.value())) else queryset.none()


class WorkspaceFilter(NamedFilter):
    title = parameter_name = "workspace"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.path = model_admin.workspace_path
        super().__init__(request, params, model, model_admin)

    def named(self, request: HttpRequest) -> "QuerySet[Any]":
        return Workspace.objects.for_user(request.user)


class ScopedAdmin(LongListAdmin):
    """Shows users with admin access the rows of their own workspaces."""

    # The lookup from a row to its workspace.
    workspace_path = "workspace"

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.for_user(request.user).listed()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # This only opens the list; `get_queryset` limits the rows.
        return request.user.is_superuser or roles_of(request).is_member

    @admin.display(description="workspace")
    def workspace(self, row: Any) -> Workspace:
        """Return the workspace of a row. For models with a column of this name, Django shows the column."""
        workspace: Workspace = attrgetter(self.workspace_path.replace("__", "."))(row)
        return workspace


class OwnedAdmin(ScopedAdmin):
    """Lets operators add and change the rows of their workspaces. A row stays in its workspace."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return roles_of(request).is_operator

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not isinstance(obj, self.model):
            return roles_of(request).is_operator
        return Workspace.objects.operated_by(request.user).filter(pk=obj.workspace_id).exists()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*self.readonly_fields, "workspace"] if obj else list(self.readonly_fields)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "workspace":
            options["queryset"] = Workspace.objects.operated_by(request.user).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **options)


class OperatedAdmin(ScopedAdmin, VerbAdmin):
    """Adds actions for operators of a workspace."""

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return roles_of(request).is_operator

    def operated(self, request: HttpRequest) -> Callable[[Any], bool]:
        workspace_ids = set(Workspace.objects.operated_by(request.user).values_list("pk", flat=True))
        return lambda row: self.workspace(row).pk in workspace_ids
