from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from documents.forms import AgainForm, UploadForm
from documents.lifecycle import DOCUMENT, JOB, STAGE
from documents.models import Document, DocumentChunk, DocumentProcessingJob, Membership, Stage, Workspace
from work.admin import LongListAdmin, ReadOnlyAdmin, SubjectAdmin, choice_filter, is_referred_to, short
from work.outcomes import DONE, Outcome, sentence

# What one click may do: somebody waits for it, and so does the web process.
MOST_AT_ONCE = 1000
# A filter beside a list; whoever has more searches.
MOST_CHOICES = 100
EXCERPT = 2000


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
            verbs = [verb for verb, statuses in self.offered.items() if row.status in statuses]
            context["buttons"] = [(verb, getattr(self, verb).short_description) for verb in verbs]
        return super().render_change_form(request, context, *args, **kwargs)

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


@admin.register(Document)
class DocumentAdmin(ScopedAdmin, SubjectAdmin):
    moves = DOCUMENT
    list_display = ["id", "name", "status", "workspace", "content_type", "size_bytes", "pages", "created_at"]
    list_display_links = ["id", "name"]
    list_filter = [choice_filter("status", lambda: Document.Status.choices), WorkspaceFilter]
    search_fields = ["name", "sha256"]
    fields = [
        *("name", "workspace", "status", "content_type", "size_bytes", "sha256", "stored_as", "download", "pages"),
        *("created_at", "excerpt"),
    ]
    readonly_fields = ["stored_as", "download", "excerpt"]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return Workspace.objects.operated_by(request.user).exists()

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """As Django's, but outside of a transaction: a file is stored first."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        is_again, is_sent = "again" in request.POST, request.method == "POST"
        upload = UploadForm(request, is_sent=is_sent and not is_again)
        form = AgainForm(request, is_sent=True) if is_again else upload
        if is_sent and (document := form.made()):
            self.message_user(request, format_html("Stored {} as document {}.", document.name, document.pk))
            return HttpResponseRedirect(reverse("admin:documents_document_change", args=[document.pk]))
        context = self.admin_site.each_context(request) | {
            "title": "Add document",
            "opts": self.opts,
            "form": form,
            "upload": upload,
        }
        return TemplateResponse(request, "admin/upload.html", context, status=form.answer_code)

    @admin.display(description="stored as")
    def stored_as(self, document: Document) -> str:
        # No link: nothing may be served from the storage but through a view that says how.
        return document.file.name or ""

    @admin.display(description="file")
    def download(self, document: Document) -> str:
        url = reverse("documents:download", args=[document.pk])
        return format_html('<a href="{}">Download</a>', url) if document.file else "-"

    @admin.display(description="text")
    def excerpt(self, document: Document) -> str:
        return document.text if len(document.text) <= EXCERPT else f"{document.text[:EXCERPT]}…"


@admin.register(DocumentChunk)
class DocumentChunkAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "document__workspace"
    list_display = ["id", "document", "position", "page", "excerpt", "workspace"]
    list_filter = [WorkspaceFilter]
    fields = ["document", "workspace", "position", "page", "text", "embedding_model"]
    readonly_fields = ["workspace"]

    @admin.display(description="text")
    def excerpt(self, chunk: DocumentChunk) -> str:
        return short(chunk.text)

    @admin.display(description="workspace")
    def workspace(self, chunk: DocumentChunk) -> Workspace:
        return chunk.document.workspace


@admin.register(DocumentProcessingJob)
class DocumentProcessingJobAdmin(ScopedAdmin, SubjectAdmin):
    moves = JOB
    workspace_path = "document__workspace"
    list_display = ["id", "status", "error", "document", "workspace", "attempts", "next_attempt_at", "finished_at"]
    list_filter = [choice_filter("status", lambda: DocumentProcessingJob.Status.choices), WorkspaceFilter]
    search_fields = ["document__name", "error_message"]
    fields = [
        *("document", "workspace", "status", "attempts", "max_attempts", "next_attempt_at"),
        *("created_at", "started_at", "finished_at", "failure_type", "error_message", "error_log"),
    ]
    readonly_fields = ["workspace"]

    @admin.display(description="workspace")
    def workspace(self, job: DocumentProcessingJob) -> Workspace:
        return job.document.workspace

    @admin.display(description="error")
    def error(self, job: DocumentProcessingJob) -> str:
        return short(job.error_message)


@admin.register(Stage)
class StageAdmin(ScopedAdmin, SubjectAdmin):
    moves = STAGE
    workspace_path = "job__document__workspace"
    list_display = ["id", "status", "error", "name", "segment", "document", "losses", "lease_owner", "finished_at"]
    list_filter = [
        choice_filter("status", lambda: Stage.Status.choices),
        choice_filter("name", lambda: Stage.Name.choices),
        WorkspaceFilter,
    ]
    search_fields = ["error_message"]
    fields = [
        *("job", "document", "name", "segment", "status", "losses", "lease_owner", "lease_expires_at", "claim_token"),
        *("created_at", "started_at", "finished_at", "failure_type", "error_message"),
    ]
    readonly_fields = ["document"]

    @admin.display(description="document")
    def document(self, stage: Stage) -> Document:
        return stage.job.document

    @admin.display(description="error")
    def error(self, stage: Stage) -> str:
        return short(stage.error_message)
