"""When a feed is asked again: at its interval while it answers, ever less often while it does not, and never not."""

import random
from datetime import datetime, timedelta

from django.conf import settings

from work import clock

DAY_SECONDS = 24 * 3600.0


def since(slot: datetime) -> datetime:
    """From when an interval is counted: from the slot, not from the moment in which the feed had its turn. Otherwise it
    would not quite be due in the next slot, and be asked in every second one.
    """
    now = clock.now()
    return slot if timedelta() <= now - slot < _seconds(settings.ADE_FEED_INTERVAL_SECONDS) else now


def after_answer(since: datetime, ttl_seconds: int = 0) -> datetime:
    """A feed may ask to be left alone for longer, up to a day."""
    return since + _seconds(max(settings.ADE_FEED_INTERVAL_SECONDS, min(ttl_seconds, DAY_SECONDS)))


def after_failure(since: datetime, failures: int, *, retry_after: float | None = None, permanent: bool) -> datetime:
    """So many in a row. What its server asks for counts more than what we would do."""
    if retry_after is not None:
        return clock.now() + _seconds(min(max(retry_after, 0.0), DAY_SECONDS))
    longest = max(DAY_SECONDS, settings.ADE_FEED_INTERVAL_SECONDS)
    doubled = longest if permanent else min(settings.ADE_FEED_INTERVAL_SECONDS * 2.0 ** min(failures - 1, 30), longest)
    # So that what failed together does not come back together.
    return since + _seconds(random.uniform(doubled / 2, doubled))  # noqa: S311  # jitter


def _seconds(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
