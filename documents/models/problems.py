from django.db import models
from django.db.models import Exists, OuterRef, Q

from documents.models.documents import Document
from documents.models.fields import FieldCorrection
from work import clock
from workspaces.models import User, visible_to

LONGEST_MESSAGE = 1000


class DocumentProblemQuerySet(models.QuerySet["DocumentProblem"]):
    def for_user(self, user: User) -> "DocumentProblemQuerySet":
        return visible_to(self, user, "document__workspace")

    def listed(self) -> "DocumentProblemQuerySet":
        return self.select_related("document__workspace").defer("document__text", "document__embedding")

    def open(self) -> "DocumentProblemQuerySet":
        """Leave out problems that a person has dismissed, or whose field a person has corrected or confirmed."""
        corrected = FieldCorrection.objects.filter(document=OuterRef("document"), name=OuterRef("field"))
        return self.filter(~Exists(corrected), dismissed_at__isnull=True)


class DocumentProblem(models.Model):
    """Something that is wrong with a document. Processing it again finds its problems again; dismissals stay."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="problems", db_index=False)
    # A stable name such as `sum_is_wrong`.
    code = models.CharField(max_length=50)
    # The field that the problem concerns, if it concerns a single one.
    field = models.CharField(max_length=100, blank=True, default="")
    message = models.CharField(max_length=LONGEST_MESSAGE)
    found_at = models.DateTimeField(default=clock.now)
    dismissed_at = models.DateTimeField(null=True, blank=True)
    dismissed_by = models.CharField(max_length=150, blank=True, default="")

    objects = DocumentProblemQuerySet.as_manager()

    class Meta:
        db_table = "document_problems"
        constraints = [
            models.CheckConstraint(
                name="problem_dismissed_by_somebody",
                condition=Q(dismissed_at__isnull=True, dismissed_by="")
                | (Q(dismissed_at__isnull=False) & ~Q(dismissed_by="")),
                violation_error_message="A dismissed problem has the name of the person who dismissed it.",
            ),
        ]
        indexes = [
            models.Index(name="problems_of_document", fields=["document", "id"]),
            models.Index(name="problems_open", fields=["id"], condition=Q(dismissed_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.message
