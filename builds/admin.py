import json
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import JSONField, Model, QuerySet
from django.forms.fields import InvalidJSONInput
from django.http import HttpRequest

from builds import contents, operations
from builds.lifecycle import BUILD_STATES
from builds.models import Build, Configuration
from work.operations.admin import choice_filter, is_referred_to, short
from work.operations.ids import id_of
from workspaces.permissions import NamedFilter, OperatedAdmin, OwnedAdmin, WorkspaceFilter


class ConfigurationFilter(NamedFilter):
    title = parameter_name = path = "configuration"

    def named(self, request: HttpRequest) -> "QuerySet[Any]":
        return Configuration.objects.for_user(request.user)

    def offered(self, request: HttpRequest) -> "QuerySet[Any]":
        """Offer only the configurations of the selected workspace. If none is selected, offer all."""
        workspace, configurations = id_of(request.GET.get("workspace")), self.named(request)
        return configurations if workspace is None else configurations.filter(workspace=workspace)


class FilesField(forms.JSONField):
    widget = forms.Textarea(attrs={"rows": 20, "class": "vLargeTextField"})

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        # The JSON is nested too deeply, or a number has too many digits.
        except (RecursionError, ValueError) as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"value": "…"}) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return InvalidJSONInput(data)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return super().prepare_value(value)
        # JSON can contain lone surrogates, but a page cannot, so show them escaped.
        return json.dumps(value, indent=2, ensure_ascii=False).encode(errors="backslashreplace").decode()


class ConfigurationForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta:
        help_texts = {
            "entry_point": "A module among the files, or MODULE:FUNCTION.",
            "requirements": "One per line, like package>=1.2. Packages come from the package index: options,"
            " addresses and paths are not allowed.",
            "python_version": "Like 3.12. Leave empty to use ADE's own version.",
            "publish": "Runs that succeed publish their findings as fields of their document.",
        }

    def clean_files(self) -> Any:
        files = self.cleaned_data["files"]
        return _without_problems({} if files is None else files, contents.problems_of_files)

    def clean_entry_point(self) -> Any:
        return _without_problems(self.cleaned_data["entry_point"], contents.problems_of_entry_point)

    def clean_python_version(self) -> Any:
        return _without_problems(self.cleaned_data["python_version"], contents.problems_of_python_version)

    def clean_requirements(self) -> Any:
        before, sent = self.instance.requirements, self.cleaned_data["requirements"].replace("\r\n", "\n")
        # Browsers change the line endings, but requirements that were not edited must not lead to a new build.
        text = before if before.strip().splitlines() == sent.splitlines() else sent
        return _without_problems(text, contents.problems_of_requirements)


@admin.register(Configuration)
class ConfigurationAdmin(OwnedAdmin):
    form = ConfigurationForm
    formfield_overrides = {
        JSONField: {"form_class": FilesField, "help_text": "A JSON object that maps paths to texts."},
    }
    list_display = ["id", "name", "workspace", "entry_point", "updated_at"]
    list_display_links = ["id", "name"]
    list_filter = [WorkspaceFilter]
    search_fields = ["name"]
    fields = ["workspace", "name", "entry_point", "python_version", "publish", "requirements", "files"]
    fields += ["contents_sha256", "created_at", "updated_at"]
    readonly_fields = ["contents_sha256", "created_at", "updated_at"]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is not None and self.has_change_permission(request, obj) and not is_referred_to(obj)


@admin.register(Build)
class BuildAdmin(OperatedAdmin):
    states = BUILD_STATES
    workspace_path = "configuration__workspace"
    list_display = ["id", "status", "error", "configuration", "print", "workspace", "created_at", "finished_at"]
    list_filter = [choice_filter("status", lambda: Build.Status.choices), WorkspaceFilter, ConfigurationFilter]
    search_fields = ["fingerprint", "configuration__name", "error_message"]
    fields = [
        *("configuration", "workspace", "fingerprint", "status", "losses", "size_bytes", "created_at", "queued_at"),
        *("started_at", "finished_at", "lease_owner", "lease_expires_at", "claim_token", "cancel_requested_at"),
        *("cancel_requested_by", "failure_type", "error_message", "lock"),
    ]
    readonly_fields = ["workspace"]
    operations = [operations.BUILD_AGAIN, operations.CANCEL]

    @admin.display(description="fingerprint")
    def print(self, build: Build) -> str:
        return build.fingerprint[:12]

    @admin.display(description="error")
    def error(self, build: Build) -> str:
        return short(build.error_message)


def _without_problems(value: Any, problems_of: Any) -> Any:
    if problems := list(problems_of(value)):
        raise ValidationError(problems)
    return value
