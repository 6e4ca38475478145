from django.db import models
from django.db.models import Q

from documents.models.documents import Document
from work import clock
from workspaces.models import User, Workspace, visible_to


class SenderQuerySet(models.QuerySet["Sender"]):
    def for_user(self, user: User) -> "SenderQuerySet":
        return visible_to(self, user, "workspace").kept()

    def listed(self) -> "SenderQuerySet":
        return self.select_related("workspace")

    def kept(self) -> "SenderQuerySet":
        """Leave out senders that are being forgotten."""
        return self.filter(forgotten_at__isnull=True)


class Sender(models.Model):
    """Who sends documents to a workspace, and what ADE has learned about their documents."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="senders", db_index=False)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    # While a sender is switched off, nothing is learned from its documents, and no lesson is used.
    switched_off_at = models.DateTimeField(null=True, blank=True, editable=False)
    switched_off_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    # When and by whom its lessons were last applied to documents that were there already.
    applied_at = models.DateTimeField(null=True, blank=True, editable=False)
    applied_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    # A sender that is being forgotten: its values are removed from its documents, then the row.
    forgotten_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = SenderQuerySet.as_manager()

    class Meta:
        db_table = "senders"
        constraints = [
            models.CheckConstraint(
                name="sender_switched_off_by_somebody",
                condition=Q(switched_off_at__isnull=True, switched_off_by="")
                | (Q(switched_off_at__isnull=False) & ~Q(switched_off_by="")),
                violation_error_message="A sender that is switched off has the name of the person who did it.",
            ),
        ]
        indexes = [models.Index(name="senders_of_workspace", fields=["workspace", "-id"])]

    def __str__(self) -> str:
        return self.name


class SenderIdentity(models.Model):
    """Something that names a sender: its VAT id, IBAN, tax number, domain or name. No two senders share one."""

    class Kind(models.TextChoices):
        VAT_ID = "vat_id", "VAT id"
        TAX_NUMBER = "tax_number", "tax number"
        IBAN = "iban", "IBAN"
        DOMAIN = "domain"
        NAME = "name"

    sender = models.ForeignKey(Sender, on_delete=models.CASCADE, related_name="identities")
    # Copied from the sender, whose workspace never changes, because the constraint needs it.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    # In the form in which equal identities are equal texts.
    value = models.CharField(max_length=200)

    class Meta:
        db_table = "sender_identities"
        constraints = [
            models.UniqueConstraint(
                name="sender_identity_is_unique_in_its_workspace",
                fields=["workspace", "value", "kind"],
                violation_error_message="Another sender of this workspace has this identity.",
            ),
            models.CheckConstraint(
                name="sender_identity_kind_is_known",
                condition=Q(kind__in=["domain", "iban", "name", "tax_number", "vat_id"]),
                violation_error_message="The kind of the identity is unknown.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.value}"


class SenderLessonQuerySet(models.QuerySet["SenderLesson"]):
    def for_user(self, user: User) -> "SenderLessonQuerySet":
        return visible_to(self, user, "sender__workspace").filter(sender__forgotten_at__isnull=True)

    def listed(self) -> "SenderLessonQuerySet":
        return self.select_related("sender__workspace")

    def counted(self) -> "SenderLessonQuerySet":
        """Annotate how many documents confirm the lesson (`times_right`) and contradict it (`times_wrong`)."""
        return self.annotate(
            times_right=models.Count("evidence", filter=Q(evidence__is_right=True)),
            times_wrong=models.Count("evidence", filter=Q(evidence__is_right=False)),
        )


class SenderLesson(models.Model):
    """What a correction or confirmation taught about a sender: how its documents print one field.

    An empty `method` says that there was nothing to learn, because the document does not print the value.
    """

    sender = models.ForeignKey(Sender, on_delete=models.CASCADE, related_name="lessons", db_index=False)
    field = models.CharField(max_length=100)
    # See `programs/ade_understanding/learning/lessons.py`. It holds labels and places; of values, only the sender's own
    # particulars.
    method = models.JSONField(default=dict, blank=True)
    # The document from which it was learned; empty for lessons that were imported.
    learned_from = models.ForeignKey(
        Document, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    learned_at = models.DateTimeField(default=clock.now, editable=False)
    # Confirmations and contradictions that an imported lesson brought with it.
    imported_right = models.PositiveIntegerField(default=0, editable=False)
    imported_wrong = models.PositiveIntegerField(default=0, editable=False)
    switched_off_at = models.DateTimeField(null=True, blank=True, editable=False)
    switched_off_by = models.CharField(max_length=150, blank=True, default="", editable=False)

    objects = SenderLessonQuerySet.as_manager()

    class Meta:
        db_table = "sender_lessons"
        verbose_name = "lesson"
        constraints = [
            models.CheckConstraint(
                name="sender_lesson_switched_off_by_somebody",
                condition=Q(switched_off_at__isnull=True, switched_off_by="")
                | (Q(switched_off_at__isnull=False) & ~Q(switched_off_by="")),
                violation_error_message="A lesson that is switched off has the name of the person who did it.",
            ),
        ]
        indexes = [models.Index(name="sender_lessons_of_field", fields=["sender", "field"])]

    def __str__(self) -> str:
        return f"how {self.sender} prints {self.field}"

    @property
    def right(self) -> int:
        """The number of documents that confirm the lesson. The row must come from `counted`."""
        return self._counted("times_right") + self.imported_right

    @property
    def wrong(self) -> int:
        return self._counted("times_wrong") + self.imported_wrong

    def _counted(self, name: str) -> int:
        number: int = getattr(self, name)
        return number


class LessonEvidence(models.Model):
    """A document on which a person confirmed or contradicted a lesson. It stays when the document is purged."""

    lesson = models.ForeignKey(SenderLesson, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="lesson_evidence")
    is_right = models.BooleanField()

    class Meta:
        db_table = "lesson_evidence"
        constraints = [
            models.UniqueConstraint(
                name="lesson_evidence_is_one_per_document",
                fields=["lesson", "document"],
                violation_error_message="This document already confirms or contradicts the lesson.",
            ),
        ]

    def __str__(self) -> str:
        return f"document {self.document_id} {'confirms' if self.is_right else 'contradicts'} lesson {self.lesson_id}"


class SenderUpdate(models.Model):
    """Work that is left on the documents of a sender, newest first: using its lessons, or removing their values."""

    sender = models.OneToOneField(Sender, on_delete=models.CASCADE, related_name="update")
    # The documents with a smaller id are still to be updated.
    below = models.BigIntegerField()
    # If empty, only documents that have values of the sender are updated, and get no values of further fields.
    applied_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "sender_updates"

    def __str__(self) -> str:
        return f"{self.sender_id} below {self.below}"
