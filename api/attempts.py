"""Extends django-axes: an address with too many failed sign-ins is locked out, whichever user names were tried."""

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum


class Attempts(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    def is_locked(self, request: Any, credentials: dict[str, Any] | None = None) -> bool:
        if address := request.axes_ip_address:
            since = get_cool_off_threshold(request)
            attempts = AccessAttempt.objects.filter(ip_address=address, attempt_time__gte=since)
            failures = attempts.aggregate(number=Sum("failures_since_start"))["number"]
            if (failures or 0) >= settings.ADE_SIGN_IN_FAILURES:
                return True
        return bool(super().is_locked(request, credentials))
