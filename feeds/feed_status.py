"""Describes the state of a feed in words for operators."""

from datetime import timedelta

from feeds.models import FeedSource
from work import clock

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))


def state_text(feed: FeedSource) -> str:
    """Return, for example, "failed 3 times in a row, last answered 2 days ago"."""
    if feed.paused_at:
        return f"paused by {feed.paused_by} {_length(clock.now() - feed.paused_at)} ago"
    if feed.failures:
        times = "once" if feed.failures == 1 else f"{feed.failures} times in a row"
        if not feed.succeeded_at:
            return f"failed {times}, never answered"
        return f"failed {times}, last answered {_length(clock.now() - feed.succeeded_at)} ago"
    if not feed.checked_at:
        return "never checked"
    return "ok, with errors" if feed.last_error else "ok"


def next_check_text(feed: FeedSource) -> str:
    """Return, for example, "in 20 minutes"."""
    if feed.paused_at:
        return "-"
    left = feed.next_check_at - clock.now()
    return f"in {_length(left)}" if left > timedelta() else "due"


def _length(time: timedelta) -> str:
    seconds = max(0, int(time.total_seconds()))
    for unit, name in _UNITS:
        if number := seconds // unit:
            return f"{number} {name if number == 1 else f'{name}s'}"
    return "less than a minute"
