"""Keeps up to date which documents need review."""

from django.db.models import BooleanField, Case, Exists, OuterRef, Value, When

from documents.models import Document, DocumentField, DocumentProblem, FieldCorrection


def update(document_id: int) -> None:
    """Set `to_review` of a document. Call this in the transaction that changes its fields, corrections or problems."""
    corrected = FieldCorrection.objects.filter(document=OuterRef("document"), name=OuterRef("name"))
    unsure = DocumentField.objects.filter(~Exists(corrected), document=OuterRef("pk"), to_review=True)
    problems = DocumentProblem.objects.open().filter(document=OuterRef("pk"))
    needs = Case(When(Exists(unsure) | Exists(problems), then=Value(True)), default=False, output_field=BooleanField())
    Document.objects.filter(pk=document_id, purged_at__isnull=True).update(to_review=needs)
