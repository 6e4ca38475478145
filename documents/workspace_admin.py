from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest

from documents.models import Membership, Workspace
from documents.scoped import ScopedAdmin
from work.admin import is_referred_to


class UsernameField(forms.ModelChoiceField):  # type: ignore[type-arg]  # takes none at run time
    """By name, typed: a list would show everybody to everybody."""

    widget = forms.TextInput

    def __init__(self, **options: Any) -> None:
        super().__init__(get_user_model().objects.all(), to_field_name="username", **options)
        self.error_messages["invalid_choice"] = "Expected the name of a user, found one that nobody has."

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, int):
            return get_user_model().objects.filter(pk=value).values_list("username", flat=True).first()
        return super().prepare_value(value)


class MembershipForm(forms.ModelForm):  # type: ignore[type-arg]  # takes none at run time
    user = UsernameField(help_text="User name")

    def clean(self) -> Any:
        # Django leaves this to the database, because the workspace is no field of an inline form.
        there = Membership.objects.filter(workspace=self.instance.workspace_id, user=self.cleaned_data.get("user"))
        if there.exclude(pk=self.instance.pk).exists():
            raise ValidationError("This person is a member of this workspace already.")
        return super().clean()


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg]  # takes none at run time
    model = Membership
    form = MembershipForm
    extra = 1

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("user").order_by("user__username")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return True

    def _is_theirs(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser or (
            obj is not None and Workspace.objects.administered_by(request.user).filter(pk=obj.pk).exists()
        )

    has_add_permission = has_change_permission = has_delete_permission = _is_theirs


@admin.register(Workspace)
class WorkspaceAdmin(ScopedAdmin):
    list_display = ["id", "name", "created_at"]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    inlines = [MembershipInline]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        mine = Workspace.objects.administered_by(request.user)
        return request.user.is_superuser or (mine.filter(pk=obj.pk) if obj else mine).exists()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser and obj is not None and not is_referred_to(obj)
