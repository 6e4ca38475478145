from django.db import models
from django.db.models import Q

from work import clock


class OutsideService(models.Model):
    """The state of an external service, shared by all workers: see `documents/breakers.py`."""

    name = models.CharField(max_length=64, unique=True)
    # Set while the service does not answer or asks for a pause.
    away_since = models.DateTimeField(null=True, blank=True)
    next_try_at = models.DateTimeField(null=True, blank=True)
    # Until when the service asked not to be called.
    asked_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    message = models.TextField(blank=True, default="")
    # The claim of the stage that probes the service; valid while that stage runs under this token.
    probe_id = models.BigIntegerField(null=True, blank=True)
    probe_token = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        db_table = "outside_services"
        constraints = [
            models.CheckConstraint(
                name="service_away_has_a_next_try",
                condition=Q(away_since__isnull=True, next_try_at__isnull=True)
                | Q(away_since__isnull=False, next_try_at__isnull=False),
                violation_error_message="A service has a time for the next try only while it is unavailable.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def is_due(self) -> bool:
        return self.next_try_at is not None and self.next_try_at <= clock.now()
