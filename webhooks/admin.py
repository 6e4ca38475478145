import json
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from webhooks import operations
from webhooks.lifecycle import DELIVERY_STATES, WEBHOOK_STATES, host_of
from webhooks.models import Delivery, Webhook
from work.operations.admin import choice_filter, related_filter, short
from workspaces.models import Workspace
from workspaces.permissions import OperatedAdmin, WorkspaceFilter, roles_of


class AdministeredAdmin(OperatedAdmin):
    """Base for pages that only admins of the workspace see, because the path of a webhook's URL may be a secret."""

    def get_queryset(self, request: HttpRequest) -> Any:
        mine = Workspace.objects.administered_by(request.user)
        return super().get_queryset(request).filter(**{f"{self.workspace_path}__in": mine.values("pk")})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser or self.has_operate_permission(request)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return roles_of(request).is_admin

    def operated(self, request: HttpRequest) -> Callable[[Any], bool]:
        mine = set(Workspace.objects.administered_by(request.user).values_list("pk", flat=True))
        return lambda row: self.workspace(row).pk in mine


@admin.register(Webhook)
class WebhookAdmin(AdministeredAdmin):
    states = WEBHOOK_STATES
    list_display = ["id", "name", "state", "host", "workspace", "created_at"]
    list_display_links = ["id", "name"]
    list_filter = [WorkspaceFilter]
    search_fields = ["name"]
    fields = [
        *("name", "workspace", "url", "topics", "state", "paused_at", "paused_by", "paused_for", "delivered"),
        *("earlier_expires_at", "created_at", "created_by"),
    ]
    readonly_fields = ["state", "delivered"]
    operations = [operations.PAUSE, operations.RESUME, operations.PING, operations.REMOVE]

    @admin.display(description="state")
    def state(self, webhook: Webhook) -> str:
        return webhook.state

    @admin.display(description="host")
    def host(self, webhook: Webhook) -> str:
        return short(host_of(webhook.url))

    @admin.display(description="deliveries")
    def delivered(self, webhook: Webhook) -> str:
        url = f"{reverse('admin:webhooks_delivery_changelist')}?webhook={webhook.pk}"
        return format_html('<a href="{}">Show deliveries</a>', url)


@admin.register(Delivery)
class DeliveryAdmin(AdministeredAdmin):
    states = DELIVERY_STATES
    workspace_path = "webhook__workspace"
    list_display = ["id", "status", "topic", "webhook", "attempts", "answered", "error", "created_at", "finished_at"]
    list_filter = [choice_filter("status", lambda: Delivery.Status.choices), WorkspaceFilter, related_filter("webhook")]
    search_fields = ["error_message"]
    fields = [
        *("status", "webhook", "topic", "event_id", "resend_of", "attempts", "answered", "failure_type"),
        *("error_message", "next_attempt_at", "created_at", "started_at", "finished_at", "payload_text"),
    ]
    readonly_fields = ["payload_text"]
    operations = [operations.RESEND]

    @admin.display(description="error")
    def error(self, delivery: Delivery) -> str:
        return short(delivery.error_message) or "-"

    @admin.display(description="payload")
    def payload_text(self, delivery: Delivery) -> str:
        return format_html("<pre>{}</pre>", json.dumps(delivery.payload, indent=2))
