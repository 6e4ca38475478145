"""Elects the worker that looks at the schedules. Correctness does not depend on the election.

If two workers looked at once, each slot would still be decided under the lock of its job's row, and claimed under its
constraint. Other tasks for a single worker also call `take`, each with its own table of a single row.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from schedules.models import SchedulerLease
from work import clock
from work.models import Worker


def take(owner: str, lease: Any = SchedulerLease) -> bool:
    """Take the lease if it is free, and renew it after half its time. Return whether this worker has the lease."""
    now = clock.now()
    rows = lease.objects.filter(pk=lease.ONLY)
    row = rows.first()
    expires_at = now + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    if row is None:
        try:
            with transaction.atomic():
                lease.objects.create(pk=lease.ONLY, owner=owner, expires_at=expires_at)
        except IntegrityError:
            return False
        return True
    if row.owner == owner and row.expires_at - now > timedelta(seconds=settings.ADE_LEASE_SECONDS / 2):
        return True
    # An expiry further ahead than a lease can last was written before a clock was set back, so it does not mean that
    # the holder is alive.
    is_valid = now < row.expires_at < now + timedelta(seconds=2 * settings.ADE_LEASE_SECONDS)
    if row.owner != owner and is_valid and not _has_stopped(row.owner):
        return False
    # Update the row only if it is as it was read, because another worker may have been quicker.
    return bool(rows.filter(owner=row.owner, expires_at=row.expires_at).update(owner=owner, expires_at=expires_at))


def holder() -> str | None:
    """Return the owner of the worker that looks at the schedules now."""
    return SchedulerLease.objects.filter(expires_at__gt=clock.now()).values_list("owner", flat=True).first()


def _has_stopped(owner: str) -> bool:
    return Worker.objects.filter(boot_id=owner.rpartition(":")[2], stopped_at__isnull=False).exists()
