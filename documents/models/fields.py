from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery

from documents.models.documents import Document
from work import clock
from workspaces.models import User, visible_to

# Values with a label score lower than this, and values with a correct checksum score higher: see
# programs/ade_extractor/values.py. A field without a confidence does not count as unsure, because SQL Server cannot
# index the condition "less than this or null".
UNSURE_BELOW = 0.8
UNSURE = Q(confidence__lt=UNSURE_BELOW)


class DocumentFieldQuerySet(models.QuerySet["DocumentField"]):
    def for_user(self, user: User) -> "DocumentFieldQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentFieldQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")

    def with_corrections(self) -> "DocumentFieldQuerySet":
        """Annotate `correction` and `corrected_by`, which are None for fields without a correction."""
        corrections = _corrections()
        return self.annotate(
            correction=Subquery(corrections.values("value")[:1]),
            corrected_by=Subquery(corrections.values("corrected_by")[:1]),
        )

    def corrected(self) -> "DocumentFieldQuerySet":
        return self.filter(Exists(_corrections()))

    def to_look_at(self) -> "DocumentFieldQuerySet":
        """Return unsure, uncorrected fields of documents that were processed successfully and are not purged."""
        processed = self.filter(document__status=Document.Status.PROCESSED, document__purged_at__isnull=True)
        return processed.filter(UNSURE, ~Exists(_corrections()))


class DocumentField(models.Model):
    """A machine-read value and its place in the document. Processing the document again replaces all its fields."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="fields", db_index=False)
    name = models.CharField(max_length=100)
    value = models.TextField()
    # The type of the value: text, date, amount, …
    kind = models.CharField(max_length=32, default="text")
    confidence = models.FloatField(null=True, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    # Left, top, right and bottom as fractions of the page, measured from the page's top left corner.
    box = models.JSONField(null=True, blank=True)
    # The program or service that read the value.
    source = models.CharField(max_length=100, blank=True, default="")

    objects = DocumentFieldQuerySet.as_manager()

    class Meta:
        db_table = "document_fields"
        constraints = [
            models.UniqueConstraint(
                name="document_field_name_is_unique_in_its_document",
                fields=["document", "name"],
                violation_error_message="This document already has a field with this name.",
            ),
            models.CheckConstraint(
                name="document_field_confidence_is_a_share",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                violation_error_message="A confidence must be between 0 and 1.",
            ),
        ]
        indexes = [models.Index(name="document_fields_unsure", fields=["id"], condition=UNSURE)]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class FieldCorrectionQuerySet(models.QuerySet["FieldCorrection"]):
    def for_user(self, user: User) -> "FieldCorrectionQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "FieldCorrectionQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")


class FieldCorrection(models.Model):
    """A person's value for a field, stored in addition to the machine's value.

    A correction survives when the document is processed again.
    """

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="corrections", db_index=False)
    # The name of the field. There need not be a machine-read field of this name.
    name = models.CharField(max_length=100)
    value = models.TextField(blank=True)
    corrected_by = models.CharField(max_length=150)
    corrected_at = models.DateTimeField(default=clock.now)

    objects = FieldCorrectionQuerySet.as_manager()

    class Meta:
        db_table = "field_corrections"
        constraints = [
            models.UniqueConstraint(
                name="field_correction_is_one_per_document_and_name",
                fields=["document", "name"],
                violation_error_message="This field already has a correction.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} = {self.value} (corrected by {self.corrected_by})"


def _corrections() -> FieldCorrectionQuerySet:
    """Return the corrections of the field in the outer query."""
    return FieldCorrection.objects.filter(document=OuterRef("document"), name=OuterRef("name"))
