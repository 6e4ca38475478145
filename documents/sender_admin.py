"""Shows senders and what ADE has learned about them in the admin."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from documents import operations
from documents.models import Document, LessonEvidence, Sender, SenderIdentity, SenderLesson
from work.operations.admin import choice_filter, related_filter, short
from workspaces.permissions import OperatedAdmin, WorkspaceFilter


class _ShownInline(admin.TabularInline):  # type: ignore[type-arg]  # not generic at run time
    """Rows that are only shown."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


class IdentityInline(_ShownInline):
    model = SenderIdentity
    fields = ["kind", "value"]


class EvidenceInline(_ShownInline):
    model = LessonEvidence
    fields = ["document_id", "is_right"]
    readonly_fields = ["document_id"]


@admin.register(Sender)
class SenderAdmin(OperatedAdmin):
    list_display = ["id", "name", "workspace", "created_at", "switched_off_at", "applied_at"]
    list_display_links = ["id", "name"]
    list_filter = [
        choice_filter("state", lambda: [("off", "off")], lambda rows, _: rows.filter(switched_off_at__isnull=False)),
        WorkspaceFilter,
    ]
    search_fields = ["name", "identities__value"]
    fields = [
        *("name", "workspace", "created_at", "lessons", "documents"),
        *("switched_off_at", "switched_off_by", "applied_at", "applied_by"),
    ]
    readonly_fields = ["lessons", "documents"]
    inlines = [IdentityInline]
    operations = [operations.SENDER_APPLY, operations.SENDER_OFF, operations.SENDER_ON, operations.SENDER_FORGET]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(forgotten_at__isnull=True)

    @admin.display(description="lessons")
    def lessons(self, sender: Sender) -> str:
        number = SenderLesson.objects.filter(sender=sender).count()
        url = f"{reverse('admin:documents_senderlesson_changelist')}?sender={sender.pk}"
        return format_html('<a href="{}">{}</a>', url, number) if number else "-"

    @admin.display(description="documents")
    def documents(self, sender: Sender) -> int:
        return Document.objects.filter(sender=sender).count()


@admin.register(SenderLesson)
class SenderLessonAdmin(OperatedAdmin):
    workspace_path = "sender__workspace"
    list_display = ["id", "field", "sender", "workspace", "learned_from", "learned_at", "switched_off_at"]
    list_display_links = ["id", "field"]
    list_filter = [WorkspaceFilter, related_filter("sender")]
    search_fields = ["field"]
    fields = ["field", "sender", "workspace", "learned_at", "printed", "switched_off_at", "switched_off_by"]
    readonly_fields = ["workspace", "printed"]
    inlines = [EvidenceInline]
    operations = [operations.LESSON_OFF, operations.LESSON_ON]

    @admin.display(description="how it is printed")
    def printed(self, lesson: SenderLesson) -> str:
        return short(json.dumps(lesson.method, ensure_ascii=False)) if lesson.method else "printed nowhere"
