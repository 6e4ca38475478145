"""Shows the types that workspaces define, and the problems of documents, in the admin."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from documents import operations, retyping
from documents.models import Document, DocumentProblem, DocumentType, DocumentTypeField
from work.operations.admin import choice_filter, related_filter, short
from workspaces.models import Workspace
from workspaces.permissions import OperatedAdmin, OwnedAdmin, WorkspaceFilter, roles_of


class DocumentTypeFieldInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic at run time
    model = DocumentTypeField
    fields = ["position", "name", "kind", "required", "threshold"]
    extra = 3

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _may_change(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _may_change(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _may_change(request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return True


@admin.register(DocumentType)
class DocumentTypeAdmin(OwnedAdmin):
    """The types of a workspace. Its documents of a changed type are judged again, some with each tick of a worker."""

    list_display = ["id", "label", "name", "threshold", "workspace"]
    list_display_links = ["id", "label"]
    list_filter = [WorkspaceFilter]
    search_fields = ["name", "label"]
    fields = ["workspace", "label", "name", "words", "threshold"]
    inlines = [DocumentTypeFieldInline]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return isinstance(obj, DocumentType) and self.has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # The documents of a type carry its name.
        return [*super().get_readonly_fields(request, obj), *(["name"] if obj else [])]

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        retyping.begin(form.instance.workspace_id, form.instance.name)

    def delete_model(self, request: HttpRequest, obj: DocumentType) -> None:
        super().delete_model(request, obj)
        retyping.begin(obj.workspace_id, obj.name)


@admin.register(DocumentProblem)
class DocumentProblemAdmin(OperatedAdmin):
    workspace_path = "document__workspace"
    list_display = ["id", "problem", "code", "field", "document", "workspace", "found_at", "dismissed_by"]
    list_display_links = ["id", "problem"]
    list_filter = [
        choice_filter("state", lambda: [("open", "open")], lambda rows, _: rows.open()),
        WorkspaceFilter,
        related_filter("document"),
    ]
    search_fields = ["code", "field", "message"]
    fields = ["document_link", "workspace", "code", "field", "message", "found_at", "dismissed_at", "dismissed_by"]
    readonly_fields = ["document_link", "workspace"]
    operations = [operations.DISMISS]

    @admin.display(description="problem")
    def problem(self, row: DocumentProblem) -> str:
        return short(row.message)

    @admin.display(description="document")
    def document_link(self, row: DocumentProblem) -> str:
        document: Document = row.document
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:documents_document_change", args=[document.pk]), document
        )


def _may_change(request: HttpRequest, obj: Model | None) -> bool:
    if not isinstance(obj, DocumentType):
        return roles_of(request).is_operator
    return Workspace.objects.operated_by(request.user).filter(pk=obj.workspace_id).exists()
