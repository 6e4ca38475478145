from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from documents import field_admin, operations, type_recognition, types
from documents.forms import AgainForm, UploadForm
from documents.lifecycle import DOCUMENT_STATES, JOB_STATES, STAGE_STATES
from documents.models import (
    Document,
    DocumentChunk,
    DocumentProblem,
    DocumentProcessingJob,
    OutsideService,
    Stage,
)
from documents.retention import purged_on
from documents.sender_admin import SenderAdmin as SenderAdmin
from documents.table_admin import DocumentTableAdmin as DocumentTableAdmin
from documents.type_admin import DocumentTypeAdmin as DocumentTypeAdmin
from documents.type_recognition import UnknownType
from documents.workspace_admin import WorkspaceAdmin as WorkspaceAdmin
from work.operations.admin import ReadOnlyAdmin, SubjectAdmin, choice_filter, short
from workspaces.permissions import OperatedAdmin, ScopedAdmin, WorkspaceFilter, roles_of

EXCERPT = 2000
TO_REVIEW = choice_filter("to_review", lambda: [("1", "to review")], lambda rows, _: rows.filter(to_review=True))


@admin.register(Document)
class DocumentAdmin(OperatedAdmin):
    states = DOCUMENT_STATES
    change_form_template = "admin/document.html"
    list_display = [
        *(
            "id",
            "name",
            "status",
            "type",
            "workspace",
            "content_type",
            "size_bytes",
            "pages",
            "created_at",
            "purged_at",
        ),
    ]
    list_display_links = ["id", "name"]
    list_filter = [choice_filter("status", lambda: Document.Status.choices), TO_REVIEW, WorkspaceFilter]
    search_fields = ["name", "sha256"]
    fields = [
        *("name", "workspace", "status", "content_type", "size_bytes", "sha256", "stored_as", "download", "pages"),
        *("type", "type_confidence", "type_reason", "type_chosen_by"),
        *("created_at", "contents", "problems", "recognised", "excerpt"),
    ]
    readonly_fields = ["stored_as", "download", "contents", "problems", "recognised", "excerpt"]
    operations = [operations.REPROCESS]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return roles_of(request).is_operator

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        document = kwargs.get("obj")
        context["may_correct"] = document is not None and field_admin.may_correct(request, document)
        if document is not None and context["may_correct"]:
            context["types"] = types.of_workspace(document.workspace_id).all()
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        choose_type = self.admin_site.admin_view(require_POST(self.choose_type))
        return [path("<int:id>/type/", choose_type, name="choose_document_type"), *super().get_urls()]

    def choose_type(self, request: HttpRequest, id: int) -> HttpResponse:
        document = self.get_queryset(request).filter(pk=id).first()
        if document is None:
            raise Http404
        if not self.operated(request)(document):
            raise PermissionDenied
        try:
            is_changed = type_recognition.choose(id, request.POST.get("type", ""), actor=request.user.get_username())
        except UnknownType as refused:
            self.message_user(request, str(refused), messages.ERROR)
        else:
            said = "Changed the type." if is_changed else "The type was not changed."
            self.message_user(request, said, messages.SUCCESS if is_changed else messages.WARNING)
        return HttpResponseRedirect(reverse("admin:documents_document_change", args=[id]))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Like Django's add view, but without a transaction, because the file is stored before the row is written."""
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
        # Show the key without a link: only the download view may serve files, because it sets the headers.
        return document.file.name or ""

    @admin.display(description="file")
    def download(self, document: Document) -> str:
        url = reverse("documents:download", args=[document.pk])
        return format_html('<a href="{}">Download</a>', url) if document.file else "-"

    @admin.display(description="contents")
    def contents(self, document: Document) -> str:
        return f"{purged_on(document)}; only the record and its history remain" if document.purged_at else "kept"

    @admin.display(description="problems")
    def problems(self, document: Document) -> str:
        number = DocumentProblem.objects.filter(document=document).open().count()
        url = f"{reverse('admin:documents_documentproblem_changelist')}?state=open&document={document.pk}"
        return format_html('<a href="{}">{} to check</a>', url, number) if number else "-"

    @admin.display(description="fields")
    def recognised(self, document: Document) -> str:
        return field_admin.table_of(document)

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


@admin.register(DocumentProcessingJob)
class DocumentProcessingJobAdmin(ScopedAdmin, SubjectAdmin):
    states = JOB_STATES
    workspace_path = "document__workspace"
    list_display = ["id", "status", "error", "document", "workspace", "attempts", "next_attempt_at", "finished_at"]
    list_filter = [choice_filter("status", lambda: DocumentProcessingJob.Status.choices), WorkspaceFilter]
    search_fields = ["document__name", "error_message"]
    fields = [
        *("document", "workspace", "status", "attempts", "max_attempts", "next_attempt_at"),
        *("created_at", "started_at", "finished_at", "failure_type", "error_message", "error_log"),
    ]
    readonly_fields = ["workspace"]

    @admin.display(description="error")
    def error(self, job: DocumentProcessingJob) -> str:
        return short(job.error_message)


@admin.register(Stage)
class StageAdmin(ScopedAdmin, SubjectAdmin):
    states = STAGE_STATES
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


@admin.register(OutsideService)
class OutsideServiceAdmin(ReadOnlyAdmin):
    """External services and whether they answer. Documents wait while the service that they need does not answer."""

    list_display = ["name", "away_since", "next_try_at", "failures", "message"]
    fields = ["name", "away_since", "next_try_at", "asked_until", "failures", "message"]
