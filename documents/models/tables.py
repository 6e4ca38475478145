from django.db import models
from django.db.models import Exists, OuterRef, Q

from documents.models.documents import Document
from work import clock
from workspaces.models import User, visible_to


class DocumentTableQuerySet(models.QuerySet["DocumentTable"]):
    def for_user(self, user: User) -> "DocumentTableQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentTableQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")

    def corrected(self) -> "DocumentTableQuerySet":
        corrections = CellCorrection.objects.filter(document=OuterRef("document"), table=OuterRef("name"))
        return self.filter(Exists(corrections))


class DocumentTable(models.Model):
    """A table that a machine has read. Processing the document again replaces all its tables."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="tables", db_index=False)
    # Such as table_1 or line_items.
    name = models.CharField(max_length=100)
    page = models.PositiveIntegerField(null=True, blank=True)
    # Left, top, right and bottom as fractions of the first page that has the table.
    box = models.JSONField(null=True, blank=True)
    # A list of objects with name, label and kind.
    columns = models.JSONField()
    row_count = models.PositiveIntegerField()
    # What the limits of the reader left out.
    rows_left_out = models.PositiveIntegerField(default=0)
    columns_left_out = models.PositiveIntegerField(default=0)

    objects = DocumentTableQuerySet.as_manager()

    class Meta:
        db_table = "document_tables"
        constraints = [
            models.UniqueConstraint(
                name="document_table_name_is_unique_in_its_document",
                fields=["document", "name"],
                violation_error_message="This document already has a table with this name.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of document {self.document_id}"


class TableRows(models.Model):
    """Some consecutive rows of a table, so that a page of a long table does not load all of it."""

    table = models.ForeignKey(DocumentTable, on_delete=models.CASCADE, related_name="blocks", db_index=False)
    # The number of the first row; the first row of the table has the number 1.
    first = models.PositiveIntegerField()
    # A list of rows; each cell is a list of text, value, page and box, without nulls at the end.
    rows = models.JSONField()

    class Meta:
        db_table = "document_table_rows"
        constraints = [
            models.UniqueConstraint(
                name="table_rows_begin_at_one_row",
                fields=["table", "first"],
                violation_error_message="This table already has rows that begin there.",
            ),
            models.CheckConstraint(
                name="table_rows_are_numbered_from_one",
                condition=Q(first__gte=1),
                violation_error_message="Rows are numbered from 1.",
            ),
        ]

    def __str__(self) -> str:
        return f"rows from {self.first} of {self.table_id}"


class CellCorrectionQuerySet(models.QuerySet["CellCorrection"]):
    def for_user(self, user: User) -> "CellCorrectionQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "CellCorrectionQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")


class CellCorrection(models.Model):
    """A person's text for a cell, stored in addition to the machine's. It survives when the document is processed
    again.
    """

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="cell_corrections", db_index=False)
    # The names of the table and of the column, and the number of the row from 1.
    table = models.CharField(max_length=100)
    row = models.PositiveIntegerField()
    column = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    # What the machine had read when the person corrected it.
    machine_text = models.TextField(blank=True)
    corrected_by = models.CharField(max_length=150)
    corrected_at = models.DateTimeField(default=clock.now)

    objects = CellCorrectionQuerySet.as_manager()

    class Meta:
        db_table = "cell_corrections"
        constraints = [
            models.UniqueConstraint(
                name="cell_correction_is_one_per_cell",
                fields=["document", "table", "row", "column"],
                violation_error_message="This cell already has a correction.",
            ),
            models.CheckConstraint(
                name="cell_correction_row_is_numbered_from_one",
                condition=Q(row__gte=1),
                violation_error_message="Rows are numbered from 1.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.table}, row {self.row}, {self.column} = {self.text} (corrected by {self.corrected_by})"
