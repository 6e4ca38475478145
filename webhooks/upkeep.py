"""Maintenance of deliveries: deletes old ones, and drops the ones that will not be sent."""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from schedules.jobs import Job, JobContext
from webhooks import lifecycle
from webhooks.models import Delivery
from work import clock, pruning, wakeups
from work.models import Event
from work.pruning import Batch, days_before_now, in_batches
from work.sql import guards

# Time limit of one call, because the worker's other tasks wait for it.
SECONDS_AT_ONCE = 0.5


def maintain_deliveries(turn: JobContext) -> int:
    """Delete and drop deliveries. Return how many rows were deleted or moved. If this is interrupted, the next slot
    continues.
    """
    changed = 0
    for dropped in _drop_for_removed(turn.owner):
        changed += dropped
        turn.go_on()
    days = settings.ADE_KEEP_DELIVERIES_DAYS
    if days is not None:
        why = f"Not sent within {days} days."
        for dropped in lifecycle.drop(Q(created_at__lt=days_before_now(days)), why, actor=turn.owner):
            changed += dropped
            turn.go_on()
        for batch in purge(days):
            changed += sum(batch.gone.values())
            turn.go_on()
    # Wake the workers in case a wake-up was lost, although they also poll at every tick.
    if Delivery.objects.claimable(clock.now()).exists():
        wakeups.ring(lifecycle.DELIVERY_STATES.kind)
    return changed


def drop_of_removed(owner: str) -> int:
    """Drop some deliveries of removed webhooks, as a task of the worker. Return 0, because no worker needs to be
    woken for them.
    """
    until = time.monotonic() + SECONDS_AT_ONCE
    for _ in _drop_for_removed(owner):
        if time.monotonic() > until:
            break
    return 0


def purge(days: int) -> Iterator[Batch]:
    """Delete deliveries that ended at least this many days ago, with their events."""
    old = Delivery.objects.filter(finished_at__lt=days_before_now(days))

    def purge_batch(batch: list[int]) -> Mapping[str, int]:
        with transaction.atomic():
            ids = list(pruning.lock(old.filter(pk__in=batch)).values_list("pk", flat=True))
            about = Event.objects.filter(subject_kind=lifecycle.DELIVERY_STATES.kind, subject_id__in=ids)
            with guards.retention():
                events, _ = about.delete()
            return {"deliveries": pruning.delete(Delivery, ids), "events": events}

    return in_batches(old, purge_batch, moment="finished_at", weight="last_sequence")


def _drop_for_removed(owner: str) -> Iterator[int]:
    return lifecycle.drop(Q(webhook__removed_at__isnull=False), "The webhook was removed.", actor=owner)


WEBHOOK_UPKEEP = Job(
    name="webhook_upkeep",
    about="Deletes expired webhook deliveries, and drops deliveries that will not be sent.",
    cron="17 * * * *",
    time_zone="UTC",
    function=maintain_deliveries,
    max_runtime=timedelta(minutes=20),
    # Expired rows are deleted at once, however many slots were missed.
    coalesce=True,
    misfire_grace=timedelta(hours=2),
)
