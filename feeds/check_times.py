"""Schedules the next check of a feed: at the regular interval while it answers, with growing pauses while it fails. A
feed is never given up.
"""

import random
from datetime import datetime, timedelta

from django.conf import settings

from work import clock

DAY_SECONDS = 24 * 3600.0


def since(slot: datetime) -> datetime:
    """Return the moment from which the interval is counted: the slot rather than the time of the actual check.
    Otherwise the feed would be due slightly after the next slot, and be fetched only in every second one.
    """
    now = clock.now()
    return slot if timedelta() <= now - slot < timedelta(seconds=settings.ADE_FEED_INTERVAL_SECONDS) else now


def after_success(since: datetime, ttl_seconds: int = 0) -> datetime:
    """Return the time of the next check after a success. A feed may ask for a longer interval, up to a day."""
    return since + timedelta(seconds=max(settings.ADE_FEED_INTERVAL_SECONDS, min(ttl_seconds, DAY_SECONDS)))


def after_failure(since: datetime, failures: int, *, retry_after: float | None = None, permanent: bool) -> datetime:
    """Return the time of the next check after this many failures in a row. The server's Retry-After takes precedence
    over our own pause.
    """
    if retry_after is not None:
        return clock.now() + timedelta(seconds=min(max(retry_after, 0.0), DAY_SECONDS))
    longest = max(DAY_SECONDS, settings.ADE_FEED_INTERVAL_SECONDS)
    pause = longest if permanent else min(settings.ADE_FEED_INTERVAL_SECONDS * 2.0 ** min(failures - 1, 30), longest)
    # Add jitter, so that feeds that failed together are not retried together.
    return since + timedelta(seconds=random.uniform(pause / 2, pause))  # noqa: S311  # jitter
