from django.db import models

from work.models import SubjectQuerySet, Work, work_constraints


class ErrandQuerySet(SubjectQuerySet["Errand"]):
    def claimable(self, now):
        return self.filter(status="queued").order_by("created_at", "id")


class Errand(Work):
    """A kind of work for tests of the kernel: unlike a run, it may be claimed again."""

    ACTIVE = CLAIMED = "doing"
    TERMINAL = frozenset({"done", "failed", "cancelled"})

    status = models.CharField(max_length=16, default="queued", editable=False)
    # noop, sleep:SECONDS, child:SECONDS, raise
    script = models.CharField(max_length=100, default="noop")
    result = models.CharField(max_length=100, blank=True, default="")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="")

    objects = ErrandQuerySet.as_manager()

    class Meta:
        db_table = "errands"
        constraints = [
            *work_constraints(
                "errand",
                ["queued", "doing", "done", "failed", "cancelled"],
                claimed="doing",
                terminal=["done", "failed", "cancelled"],
            )
        ]
        indexes = [
            models.Index(name="errands_queued", fields=["created_at", "id"], condition=models.Q(status="queued"))
        ]

    def __str__(self):
        return f"errand {self.pk}"
