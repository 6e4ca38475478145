from axes.models import AccessAttempt
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from api.models import AuditEntry, KeptAnswer
from work.operations.admin import ReadOnlyAdmin, choice_filter
from workspaces.permissions import ScopedAdmin, WorkspaceFilter, roles_of

# The operations that the filter offers.
OPERATIONS = ("sign_in", "sign_in_failed", "sign_out")


@admin.register(AuditEntry)
class AuditEntryAdmin(ScopedAdmin, ReadOnlyAdmin):
    list_display = [
        *("id", "at", "actor", "operation", "subject", "workspace", "answered", "address", "request_id"),
    ]
    list_filter = [
        choice_filter("operation", lambda: [(name, name.replace("_", " ")) for name in OPERATIONS]),
        WorkspaceFilter,
    ]
    search_fields = ["actor", "request_id", "address"]
    search_help_text = "Entry number, actor, address or request ID"
    fields = [
        *("at", "actor", "person", "token", "workspace", "address", "request_id", "method", "path", "operation"),
        *("subject", "answered"),
    ]
    readonly_fields = ["subject"]

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser or roles_of(request).is_admin

    @admin.display(description="about")
    def subject(self, entry: AuditEntry) -> str:
        return f"{entry.subject_kind} {entry.subject_id or ''}".strip() or "-"


@admin.register(KeptAnswer)
class KeptAnswerAdmin(ReadOnlyAdmin):
    """Visible to superusers only. The body is not shown because it may belong to any workspace."""

    list_display = ["id", "key", "caller", "answered", "created_at"]
    search_fields = ["key", "caller"]
    fields = ["key", "caller", "answered", "created_at"]


@admin.register(AccessAttempt)
class AccessAttemptAdmin(ReadOnlyAdmin):
    """Failed sign-ins as django-axes counts them. `manage.py axes_reset_username NAME` unlocks a user."""

    list_display = ["id", "username", "ip_address", "failures_since_start", "attempt_time"]
    search_fields = ["username", "ip_address"]
    fields = ["username", "ip_address", "failures_since_start", "attempt_time", "user_agent", "path_info"]
