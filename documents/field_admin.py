"""Shows the fields of documents in the admin, and lets people correct them.

A correction belongs to a document and a field name, not to the row of a field: processing the document again replaces
these rows, even while the page of one is open in a browser. This is why fields are not part of documents/admin.py.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from documents import corrections, fields
from documents.corrections import InvalidCorrection
from documents.models import Document, DocumentField, FieldCorrection
from work.operations.admin import ReadOnlyAdmin, choice_filter, related_filter, short
from workspaces.models import Workspace
from workspaces.permissions import ScopedAdmin, WorkspaceFilter

# At most this many fields are shown on a document's page; the change list shows all.
MOST_SHOWN = 100

STATES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "to_look_at": ("needs review", lambda rows: rows.to_look_at()),
    "corrected": ("corrected", lambda rows: rows.corrected()),
}


def table_of(document: Document) -> SafeString:
    rows = fields.of_document(document.pk)
    fields_url = f"{reverse('admin:documents_documentfield_changelist')}?document={document.pk}"
    context = {"rows": rows[:MOST_SHOWN], "all": fields_url if len(rows) > MOST_SHOWN else ""}
    return render_to_string("admin/_fields.html", context)


def may_correct(request: HttpRequest, document: Document) -> bool:
    is_operated = Workspace.objects.operated_by(request.user).filter(pk=document.workspace_id).exists()
    return is_operated and document.purged_at is None


class FieldAdmin(ScopedAdmin, ReadOnlyAdmin):
    """A field that a machine read or a person corrected. Its page has a form for correcting it."""

    workspace_path = "document__workspace"
    change_form_template = "admin/field.html"
    search_fields = ["name", "value"]
    readonly_fields = ["workspace"]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        row = kwargs.get("obj")
        if row and may_correct(request, row.document):
            correction = FieldCorrection.objects.filter(document=row.document_id, name=row.name).first()
            context |= {
                "name": row.name,
                "correction": correction,
                "proposed": correction.value if correction else row.value,
                "longest": fields.LONGEST_VALUE,
                "document_id": row.document_id,
            }
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(DocumentField)
class DocumentFieldAdmin(FieldAdmin):
    list_display = ["id", "name", "read", "said", "kind", "confidence", "source", "page", "document", "workspace"]
    list_display_links = ["id", "name"]
    list_filter = [
        choice_filter(
            "state",
            lambda: [(word, title) for word, (title, _) in STATES.items()],
            lambda rows, word: STATES[word][1](rows),
        ),
        choice_filter("chosen", lambda: [("1", "chosen"), ("0", "of other sources")]),
        WorkspaceFilter,
        related_filter("document"),
    ]
    fields = [
        *("document", "workspace", "name", "value", "kind", "confidence", "page", "box", "source", "reason"),
        *("chosen", "in_conflict", "to_review", "also_found", "correction", "corrected_by"),
    ]
    readonly_fields = ["workspace", "correction", "corrected_by"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).with_corrections()

    def get_urls(self) -> list[URLPattern]:
        views = {"correct": self.correct, "withdraw": self.withdraw}
        urls = super().get_urls()
        for verb, view in views.items():
            protected = self.admin_site.admin_view(require_POST(view))
            urls.insert(0, path(f"of/<int:document_id>/{verb}/", protected, name=f"{verb}_field"))
        return urls

    def correct(self, request: HttpRequest, document_id: int) -> HttpResponse:
        name, value = request.POST.get("name", ""), request.POST.get("value", "")
        self._check(request, document_id)
        try:
            result = corrections.correct(document_id, name, value, actor=request.user.get_username())
        except InvalidCorrection as refused:
            self.message_user(request, f"The correction was not saved. {refused}", messages.ERROR)
        else:
            if result is None:
                raise Http404
            self.message_user(request, str(result))
        return self._back(document_id, name)

    def withdraw(self, request: HttpRequest, document_id: int) -> HttpResponse:
        name = request.POST.get("name", "")
        self._check(request, document_id)
        if corrections.withdraw(document_id, name, actor=request.user.get_username()):
            self.message_user(request, f"Withdrew the correction of {short(name)}.")
        else:
            self.message_user(request, f"The field {short(name)} has no correction to withdraw.", messages.WARNING)
        return self._back(document_id, name)

    @admin.display(description="value")
    def read(self, field: DocumentField) -> str:
        return short(field.value)

    @admin.display(description="correction")
    def said(self, field: Any) -> str:
        if field.correction is None:
            return "-"
        return "confirmed" if field.correction == field.value else short(field.correction)

    @admin.display(description="correction")
    def correction(self, field: Any) -> str:
        return "-" if field.correction is None else field.correction or "(nothing)"

    @admin.display(description="corrected by")
    def corrected_by(self, field: Any) -> str:
        return field.corrected_by or "-"

    def _check(self, request: HttpRequest, document_id: int) -> None:
        document = Document.objects.for_user(request.user).filter(pk=document_id).only("workspace", "purged_at").first()
        if document is None:
            raise Http404
        if not Workspace.objects.operated_by(request.user).filter(pk=document.workspace_id).exists():
            raise PermissionDenied

    def _back(self, document_id: int, name: str) -> HttpResponse:
        """Redirect to the current row of the field, or to the document if the field has no row any more."""
        field = DocumentField.objects.chosen().filter(document=document_id, name=fields.clean_name(name)).first()
        if field is not None:
            return HttpResponseRedirect(reverse("admin:documents_documentfield_change", args=[field.pk]))
        return HttpResponseRedirect(reverse("admin:documents_document_change", args=[document_id]))


@admin.register(FieldCorrection)
class FieldCorrectionAdmin(FieldAdmin):
    list_display = ["id", "name", "said", "corrected_by", "corrected_at", "document", "workspace"]
    list_display_links = ["id", "name"]
    list_filter = [WorkspaceFilter, related_filter("document")]
    search_fields = ["name", "value", "corrected_by"]
    fields = ["document", "workspace", "name", "value", "corrected_by", "corrected_at"]

    @admin.display(description="value")
    def said(self, correction: FieldCorrection) -> str:
        return short(correction.value)
