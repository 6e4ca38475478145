"""Extends django-axes: an address is also locked out if it fails too often with different user names."""

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest


class Attempts(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        return self._has_failed_too_often(request) or bool(super().is_locked(request, credentials))

    def _has_failed_too_often(self, request: Any) -> bool:
        if not request.axes_ip_address:
            return False
        failures = AccessAttempt.objects.filter(
            ip_address=request.axes_ip_address, attempt_time__gte=get_cool_off_threshold(request)
        ).aggregate(number=Sum("failures_since_start"))["number"]
        return (failures or 0) >= settings.ADE_SIGN_IN_FAILURES
