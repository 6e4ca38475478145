from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from api import operations
from api.models import ApiToken
from api.token_form import TokenForm
from work import clock
from work.operations.admin import VerbAdmin, choice_filter
from workspaces.permissions import ScopedAdmin, WorkspaceFilter, roles_of

STATES: dict[str, Callable[[Any], Any]] = {
    ApiToken.State.USABLE.value: lambda rows: rows.usable(),
    ApiToken.State.EXPIRED.value: lambda rows: rows.not_revoked().filter(expires_at__lte=clock.now()),
    ApiToken.State.REVOKED.value: lambda rows: rows.filter(revoked_at__isnull=False),
}


@admin.register(ApiToken)
class ApiTokenAdmin(ScopedAdmin, VerbAdmin):
    list_display = [
        *("id", "name", "prefix", "how", "may", "user", "workspace", "expires_at", "last_used_at", "last_used_from"),
    ]
    list_display_links = ["id", "name"]
    list_filter = [
        choice_filter("state", lambda: [(state, state) for state in STATES], lambda rows, word: STATES[word](rows)),
        WorkspaceFilter,
    ]
    search_fields = ["name", "prefix"]
    fields = [
        *("name", "prefix", "how", "may", "user", "workspace", "created_at", "created_by", "made_with", "expires_at"),
        *("revoked_at", "revoked_by", "last_used_at", "last_used_from"),
    ]
    readonly_fields = ["how", "may"]
    operations = [operations.REVOKE]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser or roles_of(request).is_member

    def has_operate_permission(self, request: HttpRequest) -> bool:
        # A user who can see a token here can revoke it, because the queryset contains no other tokens.
        return self.has_view_permission(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Show the new token in the response to the form, without a redirect, because its secret is not stored
        anywhere.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request)
        created = form.create() if request.method == "POST" else None
        context = self.admin_site.each_context(request) | {"opts": self.opts, "form": form}
        if created:
            token, secret = created
            context |= {"title": f"Token {token.name}", "token": token, "shown": secret}
            response = TemplateResponse(request, "admin/token_shown.html", context, status=201)
        else:
            response = TemplateResponse(request, "admin/add_token.html", context | {"title": "Add token"})
        response["Cache-Control"] = "private, no-store"
        return response

    @admin.display(description="state")
    def how(self, token: ApiToken) -> str:
        return token.state

    @admin.display(description="scopes")
    def may(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)
