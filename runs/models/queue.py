from django.db import models
from django.db.models import Q

from work.models import Subject


class Queue(Subject):
    """The single row that says whether the queue is paused. The first pause creates it; without it the queue is not
    paused.
    """

    ONLY = 1

    paused_at = models.DateTimeField(null=True, blank=True, editable=False)
    paused_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    pause_reason = models.TextField(blank=True, default="", editable=False)

    class Meta:
        db_table = "run_queue"
        verbose_name = "queue of runs"
        verbose_name_plural = "queue of runs"
        constraints = [
            models.CheckConstraint(
                name="queue_is_one_row",
                condition=Q(pk=1),
                violation_error_message="There is a single run queue, in row 1.",
            ),
            models.CheckConstraint(
                name="queue_paused_by_somebody",
                condition=Q(paused_at__isnull=True, paused_by="", pause_reason="")
                | (Q(paused_at__isnull=False) & ~Q(paused_by="")),
                violation_error_message="A pause needs the name of the person who paused; a reason needs a pause.",
            ),
        ]

    def __str__(self) -> str:
        return "queue of runs"
