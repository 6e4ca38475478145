from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest

from documents import retention
from documents.models import MOST_DAYS
from work.operations.admin import MOST_COUNTED, is_referred_to
from workspaces.models import Membership, Workspace
from workspaces.permissions import ScopedAdmin, roles_of


class UsernameField(forms.ModelChoiceField):  # type: ignore[type-arg]  # takes none at run time
    """A text field for a user name: a list of choices would reveal all users."""

    widget = forms.TextInput

    def __init__(self, **options: Any) -> None:
        super().__init__(get_user_model().objects.all(), to_field_name="username", **options)
        self.error_messages["invalid_choice"] = "There is no user with this name."

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, int):
            return get_user_model().objects.filter(pk=value).values_list("username", flat=True).first()
        return super().prepare_value(value)


class MembershipForm(forms.ModelForm):  # type: ignore[type-arg]  # takes none at run time
    user = UsernameField(help_text="User name", widget=forms.TextInput({"aria-label": "User name"}))

    def clean(self) -> Any:
        # Django leaves this check to the database, because the workspace is not a field of the inline form.
        same = Membership.objects.filter(workspace=self.instance.workspace_id, user=self.cleaned_data.get("user"))
        if same.exclude(pk=self.instance.pk).exists():
            raise ValidationError("This user is already a member of this workspace.")
        return super().clean()


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg]  # takes none at run time
    model = Membership
    form = MembershipForm
    extra = 1

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            # Label the field itself for screen readers: otherwise only the column heading would name it.
            field.widget.attrs["aria-label"] = db_field.verbose_name
        return field

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("user").order_by("user__username")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser or (
            obj is not None and Workspace.objects.administered_by(request.user).filter(pk=obj.pk).exists()
        )

    has_change_permission = has_delete_permission = has_add_permission


class WorkspaceForm(forms.ModelForm):  # type: ignore[type-arg]  # takes none at run time
    document_retention_days = forms.IntegerField(
        label="document retention (days)",
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Counted from the upload. After this time, a document's file, text and extracted data are purged for"
        " good; its name, its history and the output of runs stay. Leave empty to keep documents for ever.",
    )
    purge = forms.BooleanField(
        label="purge due documents",
        required=False,
        help_text="Required if a shorter retention makes documents due at once.",
    )

    def clean_document_retention_days(self) -> int | None:
        days: int | None = self.cleaned_data["document_retention_days"]
        before = Workspace.objects.filter(pk=self.instance.pk).values_list("document_retention_days", flat=True).first()
        if "purge" in self.data or not self.instance.pk or not retention.is_shorter(days, before):
            return days
        if due := retention.preview(self.instance, days).documents:
            raise ValidationError(f"{due} documents are older and would be purged at once. Confirm this below.")
        return days


@admin.register(Workspace)
class WorkspaceAdmin(ScopedAdmin):
    form = WorkspaceForm
    list_display = ["id", "name", "document_retention_days", "created_at"]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    readonly_fields = ["due"]
    inlines = [MembershipInline]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        policy = ["document_retention_days", "due"]
        return ["name", *policy, *(["purge"] if self.has_change_permission(request, obj) else [])]

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:  # signature of Django
        super().save_model(request, obj, form, change)
        if "document_retention_days" in form.changed_data:
            before = form.initial.get("document_retention_days")
            retention.log_policy(obj, before, actor=request.user.get_username())

    @admin.display(description="due now")
    def due(self, workspace: Workspace) -> str:
        days = workspace.document_retention_days
        if workspace.pk is None or days is None:
            return "-"
        due = workspace.documents.all().older_than(days)[: MOST_COUNTED + 1].count()
        return f"{due if due <= MOST_COUNTED else f'over {MOST_COUNTED}'} documents are older than this"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if request.user.is_superuser or obj is None:
            return request.user.is_superuser or roles_of(request).is_admin
        return Workspace.objects.administered_by(request.user).filter(pk=obj.pk).exists()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser and obj is not None and not is_referred_to(obj)
