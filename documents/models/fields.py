from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery

from documents.models.documents import Document
from work import clock
from workspaces.models import User, visible_to

# A confidence is the share of values that are right: see docs/understanding.md. A value with a lower one needs review,
# unless the type of its document says otherwise.
UNSURE_BELOW = 0.8
LONGEST_REASON = 500


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

    def chosen(self) -> "DocumentFieldQuerySet":
        """Leave out the values of sources that do not apply."""
        return self.filter(chosen=True)

    def to_look_at(self) -> "DocumentFieldQuerySet":
        """Return uncorrected fields that need review, of documents that were processed successfully and not purged."""
        processed = self.filter(document__status=Document.Status.PROCESSED, document__purged_at__isnull=True)
        return processed.filter(~Exists(_corrections()), to_review=True)


class DocumentField(models.Model):
    """A value that one source gives for a field, and its place in the document.

    One value per name is chosen: it applies unless a person has corrected the field. `documents/choosing.py` sets the
    flags of a document's fields together. Processing the document again replaces all values but those of runs.
    """

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="fields", db_index=False)
    name = models.CharField(max_length=100)
    value = models.TextField()
    # The type of the value: text, date, amount, …
    kind = models.CharField(max_length=32, default="text")
    confidence = models.FloatField(null=True, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    # Left, top, right and bottom as fractions of the page, measured from the page's top left corner.
    box = models.JSONField(null=True, blank=True)
    # Where the value comes from: `e-invoice`, `page`, `service`, `sender` or `run N`.
    source = models.CharField(max_length=100, default="page")
    # Why the source gives this value, in a short sentence.
    reason = models.CharField(max_length=LONGEST_REASON, blank=True, default="", db_default="")
    chosen = models.BooleanField(default=True, db_default=True)
    # Another source gives a different value and is fairly sure of it.
    in_conflict = models.BooleanField(default=False, db_default=False)
    # The chosen value is unsure or in conflict.
    to_review = models.BooleanField(default=False, db_default=False)
    # A value with a label that is not a field of the document's type.
    also_found = models.BooleanField(default=False, db_default=False)

    objects = DocumentFieldQuerySet.as_manager()

    class Meta:
        db_table = "document_fields"
        constraints = [
            models.UniqueConstraint(
                name="document_field_is_one_per_name_and_source",
                fields=["document", "name", "source"],
                violation_error_message="This document already has a value of this field from this source.",
            ),
            models.UniqueConstraint(
                name="document_field_has_one_chosen_value",
                fields=["document", "name"],
                condition=Q(chosen=True),
                violation_error_message="This field already has a chosen value.",
            ),
            models.CheckConstraint(
                name="document_field_reviewed_is_chosen",
                condition=Q(to_review=False) | Q(chosen=True, also_found=False),
                violation_error_message="Only a chosen value of the document's type needs review.",
            ),
            models.CheckConstraint(
                name="document_field_confidence_is_a_share",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                violation_error_message="A confidence must be between 0 and 1.",
            ),
        ]
        indexes = [models.Index(name="document_fields_to_review", fields=["id"], condition=Q(to_review=True))]

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
    # When ADE learned from it about the sender of the document: see `documents/learning.py`.
    learned_at = models.DateTimeField(null=True, blank=True, editable=False)

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
        indexes = [models.Index(name="corrections_to_learn", fields=["id"], condition=Q(learned_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.name} = {self.value} (corrected by {self.corrected_by})"


def _corrections() -> FieldCorrectionQuerySet:
    """Return the corrections of the field in the outer query."""
    return FieldCorrection.objects.filter(document=OuterRef("document"), name=OuterRef("name"))
