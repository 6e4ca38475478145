"""Adapts Django's admin for users and groups. Only superusers grant rights.

The two-list widget of `filter_horizontal` is disabled: it needs a mouse, has no accessible names, and lacks contrast.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from workspaces.models import Membership

admin.site.unregister([get_user_model(), Group])


# Fields that grant rights. Only superusers may edit them: otherwise, anyone who may change users could gain all rights.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


@admin.register(get_user_model())
class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]  # takes none at run time
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if _is_superuser(request) else (*fields, *RIGHTS)

    # Django's page for setting a password checks this permission too. It has to: a known password gives all rights of
    # its owner.
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_do_no_more(obj, request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_do_no_more(obj, request)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)
        if not all(_may_do_no_more(each, request) for each in objs):
            lacking.add(str(self.opts.verbose_name))
        return deleted, counts, lacking, protected


@admin.register(Group)
class GroupsAdmin(GroupAdmin):
    filter_horizontal = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def _may_do_no_more(person: Any, request: HttpRequest) -> bool:
    """Return whether the person has no rights that the user of the request lacks."""
    if person is None or _is_superuser(request):
        return True
    if person.is_superuser or not person.get_all_permissions() <= request.user.get_all_permissions():
        return False
    ours = _ranks(request.user)
    return all(rank <= ours.get(workspace, -1) for workspace, rank in _ranks(person).items())


def _ranks(person: Any) -> dict[int, int]:
    """Return the rank of the person's role in each of their workspaces. A higher rank may do more."""
    roles = Membership.objects.filter(user_id=person.pk).values_list("workspace_id", "role")
    return {workspace: Membership.Role.values.index(role) for workspace, role in roles}
