from django.db import models
from django.db.models import Q

from workspaces.models import User, Workspace, visible_to


class DocumentTypeQuerySet(models.QuerySet["DocumentType"]):
    def for_user(self, user: User) -> "DocumentTypeQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "DocumentTypeQuerySet":
        return self.select_related("workspace")


class DocumentType(models.Model):
    """A type of documents that a workspace defines. It replaces the built-in type of the same name.

    The built-in types are in `documents/types.py`.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="document_types", db_index=False)
    name = models.SlugField(max_length=50, db_index=False, help_text="Short name, such as “purchase_order”.")
    label = models.CharField(max_length=100, help_text="Name for people, such as “Purchase order”.")
    words = models.TextField(
        blank=True,
        default="",
        help_text="One word or phrase per line. A document that contains all of them is of this type.",
    )
    threshold = models.FloatField(
        default=0.8,
        help_text="From 0 to 1. Values with a lower confidence need review, unless the field says otherwise.",
    )

    objects = DocumentTypeQuerySet.as_manager()

    class Meta:
        db_table = "document_types"
        constraints = [
            models.UniqueConstraint(
                name="document_type_name_is_unique_in_its_workspace",
                fields=["workspace", "name"],
                violation_error_message="This workspace already has a document type with this name.",
            ),
            models.CheckConstraint(
                name="document_type_threshold_is_a_share",
                condition=Q(threshold__gte=0, threshold__lte=1),
                violation_error_message="A threshold must be between 0 and 1.",
            ),
        ]

    def __str__(self) -> str:
        return self.label


class DocumentTypeField(models.Model):
    """A field that documents of a type have."""

    class Kind(models.TextChoices):
        TEXT = "text"
        NUMBER = "number"
        DATE = "date"
        AMOUNT = "amount"
        IBAN = "iban", "IBAN"
        VAT_ID = "vat_id", "VAT id"
        EMAIL = "email"
        PHONE = "phone"

    type = models.ForeignKey(DocumentType, on_delete=models.CASCADE, related_name="fields", db_index=False)
    position = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=32,
        choices=Kind.choices,
        default=Kind.TEXT,
        help_text="A value that does not have the form of its kind is a problem of the document.",
    )
    required = models.BooleanField(default=False, help_text="A document without this field needs review.")
    threshold = models.FloatField(
        null=True, blank=True, help_text="From 0 to 1. Empty: the threshold of the type applies."
    )

    class Meta:
        db_table = "document_type_fields"
        ordering = ["position", "id"]
        constraints = [
            models.UniqueConstraint(
                name="document_type_field_is_unique_in_its_type",
                fields=["type", "name"],
                violation_error_message="This type already has a field with this name.",
            ),
            models.CheckConstraint(
                name="document_type_field_threshold_is_a_share",
                condition=Q(threshold__isnull=True) | Q(threshold__gte=0, threshold__lte=1),
                violation_error_message="A threshold must be between 0 and 1.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Retyping(models.Model):
    """A type that has changed, and whose documents are judged by it again, newest first."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=50)
    # The documents with a smaller id are still to be judged.
    below = models.BigIntegerField()

    class Meta:
        db_table = "document_retypings"
        constraints = [
            models.UniqueConstraint(
                name="retyping_is_one_per_type",
                fields=["workspace", "name"],
                violation_error_message="The documents of this type are being judged again already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} below {self.below}"
