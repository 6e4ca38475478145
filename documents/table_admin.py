"""Shows tables of documents, and corrections of their cells, in the admin. People correct cells on the live pages."""

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from documents import tables
from documents.models import CellCorrection, DocumentTable
from work.operations.admin import ReadOnlyAdmin, related_filter, short
from workspaces.permissions import ScopedAdmin, WorkspaceFilter

# The first rows of a table, which its admin page shows.
MOST_SHOWN = 50


class OfDocumentAdmin(ScopedAdmin, ReadOnlyAdmin):
    workspace_path = "document__workspace"
    list_filter = [WorkspaceFilter, related_filter("document")]
    readonly_fields = ["workspace"]


@admin.register(DocumentTable)
class DocumentTableAdmin(OfDocumentAdmin):
    list_display = ["id", "name", "page", "row_count", "labels", "document", "workspace"]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    fields = ["document", "workspace", "name", "page", "row_count", "rows_left_out", "columns_left_out", "first_rows"]
    readonly_fields = ["workspace", "first_rows"]

    @admin.display(description="columns")
    def labels(self, table: DocumentTable) -> str:
        return short(", ".join(column.title for column in tables.columns_of(table)))

    @admin.display(description="rows")
    def first_rows(self, table: DocumentTable) -> SafeString:
        context = {"columns": tables.columns_of(table), "rows": list(tables.rows_of(table, 1, MOST_SHOWN))}
        return render_to_string("admin/_table.html", context)


@admin.register(CellCorrection)
class CellCorrectionAdmin(OfDocumentAdmin):
    list_display = ["id", "table", "row", "column", "said", "corrected_by", "corrected_at", "document", "workspace"]
    search_fields = ["table", "column", "text", "corrected_by"]
    fields = [
        *("document", "workspace", "table", "row", "column"),
        *("text", "machine_text", "corrected_by", "corrected_at"),
    ]

    @admin.display(description="text")
    def said(self, correction: CellCorrection) -> str:
        return short(correction.text) or "(nothing)"
