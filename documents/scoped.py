"""Bases of the admin of what belongs to workspaces: who sees which rows, and who may do something with them."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from documents.models import Workspace
from work.admin import LongListAdmin, SubjectAdmin
from work.outcomes import DONE, Outcome, sentence

# What one click may do: somebody waits for it, and so does the web process.
MOST_AT_ONCE = 1000
# A filter beside a list; whoever has more searches.
MOST_CHOICES = 100


class WorkspaceFilter(admin.SimpleListFilter):
    title = parameter_name = "workspace"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.path = model_admin.workspace_path
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        seen = Workspace.objects.for_user(request.user).order_by("name").values_list("pk", "name")
        return [(str(id), name) for id, name in seen[:MOST_CHOICES]]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        chosen = self.value()
        return queryset.filter(**{self.path: chosen}) if chosen in dict(self.lookup_choices) else queryset


class ScopedAdmin(LongListAdmin):
    """Rows of workspaces: whoever may enter the admin sees those of their own."""

    # From a row to its workspace.
    workspace_path = "workspace"

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.for_user(request.user).listed()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # The queryset says which ones.
        return request.user.is_superuser or Workspace.objects.for_user(request.user).exists()


class OperatedAdmin(ScopedAdmin, SubjectAdmin):
    """Each action of the list is also a button on the page of a row."""

    # In which statuses the page offers it.
    offered: Mapping[str, frozenset[str]]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return Workspace.objects.operated_by(request.user).exists()

    def get_urls(self) -> list[URLPattern]:
        views = {
            verb: self.admin_site.admin_view(require_POST(partial(self.operate, verb=verb))) for verb in self.offered
        }
        return [*(path(f"<int:id>/{verb}/", view) for verb, view in views.items()), *super().get_urls()]

    def operate(self, request: HttpRequest, id: int, verb: str) -> HttpResponse:
        rows = self.get_queryset(request).filter(pk=id)
        row = rows.first()
        if row is None:
            raise Http404
        if not self._is_operated(request, row):
            raise PermissionDenied
        getattr(self, verb)(request, rows)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[id]))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        row = kwargs.get("obj")
        if row and self._is_operated(request, row):
            verbs = [verb for verb in self.offered if self.is_offered(verb, row)]
            context["buttons"] = [(verb, getattr(self, verb).short_description) for verb in verbs]
        return super().render_change_form(request, context, *args, **kwargs)

    def is_offered(self, verb: str, row: Any) -> bool:
        return row.status in self.offered[verb]

    def do_each(self, request: HttpRequest, rows: Any, do: Callable[[Any, str], Outcome]) -> None:
        """Do it to each row that is theirs, the oldest first, and tell what became of them."""
        chosen = list(rows[: MOST_AT_ONCE + 1])
        if len(chosen) > MOST_AT_ONCE:
            self.message_user(request, f"Choose at most {MOST_AT_ONCE} at a time. Nothing was done.", messages.ERROR)
            return
        mine = set(Workspace.objects.operated_by(request.user).values_list("pk", flat=True))
        actor = request.user.get_username()
        outcomes = Counter(
            do(row, actor) if self._workspace_id(row) in mine else Outcome.NOT_YOURS for row in reversed(chosen)
        )
        self.message_user(
            request, sentence(self.moves, outcomes), messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING
        )

    def _is_operated(self, request: HttpRequest, row: Any) -> bool:
        return Workspace.objects.operated_by(request.user).filter(pk=self._workspace_id(row)).exists()

    def _workspace_id(self, row: Any) -> int:
        for name in self.workspace_path.split("__"):
            row = getattr(row, name)
        assert isinstance(row, Workspace)
        return row.pk
