"""Of several workers, one looks at the schedules. Were there two for a moment, the rows would still be right: each slot
is decided under the row of its job, and claimed by its constraint.

Whoever else has something that one of several should do takes the one row of a table of its own in the same way.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from runs.models import SchedulerLease
from work import clock
from work.models import Worker


def take(owner: str, lease: Any = SchedulerLease) -> bool:
    """True while it is ours; taken when it is free, and renewed when half of it is over."""
    now = clock.now()
    held = lease.objects.filter(pk=lease.ONLY)
    row = held.first()
    until = now + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    if row is None:
        return _make(lease, owner, until)
    if row.owner == owner and row.expires_at - now > timedelta(seconds=settings.ADE_LEASE_SECONDS / 2):
        return True
    # What lies further ahead than any lease was written before a clock was set back: it tells nothing of its holder.
    is_valid = now < row.expires_at < now + timedelta(seconds=2 * settings.ADE_LEASE_SECONDS)
    if row.owner != owner and is_valid and not _has_stopped(row.owner):
        return False
    # As it was when we looked: somebody else may have been quicker.
    return bool(held.filter(owner=row.owner, expires_at=row.expires_at).update(owner=owner, expires_at=until))


def holder() -> str | None:
    """Who looks at the schedules now."""
    return SchedulerLease.objects.filter(expires_at__gt=clock.now()).values_list("owner", flat=True).first()


def _make(lease: Any, owner: str, until: datetime) -> bool:
    try:
        with transaction.atomic():
            lease.objects.create(pk=lease.ONLY, owner=owner, expires_at=until)
    except IntegrityError:
        return False
    return True


def _has_stopped(owner: str) -> bool:
    return Worker.objects.filter(boot_id=owner.rpartition(":")[2], stopped_at__isnull=False).exists()
