from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.module_loading import import_string

from documents.models.columns import EmbeddingField, WordsField
from work import clock
from work.models import Subject, SubjectQuerySet
from workspaces.models import User, Workspace, visible_to

# The longest retention, a hundred years. A larger number is a mistake or is meant as "for ever".
MOST_DAYS = 36_500


class DocumentQuerySet(SubjectQuerySet["Document"]):
    def for_user(self, user: User) -> "DocumentQuerySet":
        return visible_to(self, user, "workspace")

    def kept(self) -> "DocumentQuerySet":
        """Leave out purged documents."""
        return self.filter(purged_at__isnull=True)

    def older_than(self, days: int) -> "DocumentQuerySet":
        """Return the documents older than a retention of this many days, without those already purged."""
        return self.kept().filter(created_at__lt=clock.now() - timedelta(days=min(days, MOST_DAYS)))

    def idle(self) -> "DocumentQuerySet":
        """Return documents that no unfinished work needs, in this app or in the apps that build on it."""
        needs: list[Q] = [import_string(path)() for path in settings.DOCUMENT_NEEDS]
        ended = self.filter(status__in=[Document.Status.PROCESSED, Document.Status.FAILED])
        return ended.exclude(Q(*needs, _connector=Q.OR))

    def listed(self) -> "DocumentQuerySet":
        """Join the workspace, which lists show, and defer the large columns, which they do not."""
        return self.select_related("workspace").defer("text", "embedding")


class Document(Subject):
    """A stored file and what was extracted from it."""

    class Status(models.TextChoices):
        PROCESSING = "processing"
        PROCESSED = "processed"
        FAILED = "failed"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="documents", db_index=False)
    name = models.CharField(max_length=255)
    file = models.FileField(max_length=255, blank=True)
    content_type = models.CharField(max_length=100)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PROCESSING, editable=False)
    pages = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField(blank=True, default="")
    # The mean of the chunks' vectors, and the model that computed them. Vectors of different models are never compared.
    embedding = EmbeddingField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")
    # The name of the document's type, built-in or defined by the workspace; empty if it is not known.
    type = models.CharField(max_length=50, blank=True, default="", db_default="")
    type_confidence = models.FloatField(null=True, blank=True)
    type_reason = models.CharField(max_length=500, blank=True, default="", db_default="")
    # The person who chose the type. Processing the document again does not change it then.
    type_chosen_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    # A hash of seller, number and total of an invoice, to notice the same invoice in another file: see
    # `documents/duplicates.py`.
    invoice_key = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    # A field needs review, or there is an open problem: see `documents/reviewing.py`.
    to_review = models.BooleanField(default=False, db_default=False, editable=False)
    # When a person last corrected a field, dismissed a problem or chose the type.
    touched_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Who sent the document, if something on it says so: see `documents/senders.py`.
    sender = models.ForeignKey(
        "documents.Sender", on_delete=models.SET_NULL, null=True, blank=True, related_name="documents", db_index=False
    )
    # The processing job whose words of the pages are stored: see `documents/words.py`.
    words_job = models.BigIntegerField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    # Set when the contents were deleted; the name and the history stay.
    purged_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        db_table = "documents"
        constraints = [
            models.CheckConstraint(
                name="document_status_is_known",
                condition=Q(status__in=["failed", "processed", "processing"]),
                violation_error_message="The document status is unknown.",
            ),
            models.CheckConstraint(
                name="document_reviewed_is_kept",
                condition=Q(to_review=False) | Q(purged_at__isnull=True),
                violation_error_message="A purged document cannot be reviewed.",
            ),
            models.CheckConstraint(
                name="document_type_confidence_is_a_share",
                condition=Q(type_confidence__isnull=True) | Q(type_confidence__gte=0, type_confidence__lte=1),
                violation_error_message="A confidence must be between 0 and 1.",
            ),
            models.CheckConstraint(
                name="document_purged_holds_nothing",
                condition=Q(purged_at__isnull=True)
                | Q(
                    status__in=["failed", "processed"], file="", text="", embedding__isnull=True, words_job__isnull=True
                ),
                violation_error_message="A purged document keeps no content and cannot be processed.",
            ),
        ]
        indexes = [
            models.Index(name="documents_of_workspace", fields=["workspace", "-created_at", "-id"]),
            # For lists filtered by status: see `documents/listing.py`.
            models.Index(name="documents_of_status", fields=["workspace", "status", "-created_at", "-id"]),
            models.Index(name="documents_by_content", fields=["workspace", "sha256"]),
            # For the sweeper, which checks whether stored files have a row.
            models.Index(name="documents_by_file", fields=["file"]),
            # For retention, which would otherwise scan all purged rows.
            models.Index(
                name="documents_kept", fields=["workspace", "created_at", "id"], condition=Q(purged_at__isnull=True)
            ),
            # For recognising types from the documents whose type a person has chosen.
            models.Index(name="documents_taught", fields=["workspace", "-id"], condition=Q(type_chosen_by__gt="")),
            models.Index(
                name="documents_by_invoice", fields=["workspace", "invoice_key", "id"], condition=Q(invoice_key__gt="")
            ),
            # For lists filtered by type.
            models.Index(name="documents_of_type", fields=["workspace", "type", "-created_at", "-id"]),
            models.Index(
                name="documents_to_review", fields=["workspace", "-created_at", "-id"], condition=Q(to_review=True)
            ),
            # For updating the documents of a sender, newest first.
            models.Index(name="documents_of_sender", fields=["sender", "-id"], condition=Q(sender__isnull=False)),
            # For searches, which count the documents with vectors of another model.
            models.Index(name="documents_by_model", fields=["embedding_model", "workspace"]),
        ]

    def __str__(self) -> str:
        return self.name


class DocumentChunkQuerySet(models.QuerySet["DocumentChunk"]):
    def for_user(self, user: User) -> "DocumentChunkQuerySet":
        return visible_to(self, user, "workspace")

    def listed(self) -> "DocumentChunkQuerySet":
        large = ("embedding", "words", "document__text", "document__embedding")
        return self.select_related("document__workspace").defer(*large)


class DocumentChunk(models.Model):
    """A piece of a document's text about one topic, with its vector."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    # Copied from the document, whose workspace never changes, because searches filter chunks by workspace.
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    position = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    words = WordsField(of="text")
    embedding = EmbeddingField(null=True, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True, default="")

    objects = DocumentChunkQuerySet.as_manager()

    class Meta:
        db_table = "document_chunks"
        constraints = [
            models.UniqueConstraint(
                name="chunk_position_is_unique_in_its_document",
                fields=["document", "position"],
                violation_error_message="This document already has a chunk at this position.",
            ),
        ]
        indexes = [
            # For reading the vectors of one model in one workspace, and for noticing new vectors.
            models.Index(name="chunks_of_workspace", fields=["workspace", "embedding_model", "id"]),
            # For reading the text of one page: a document may have thousands of pages.
            models.Index(name="chunks_of_page", fields=["document", "page", "position"]),
        ]

    def __str__(self) -> str:
        return f"chunk {self.position} of document {self.document_id}"
