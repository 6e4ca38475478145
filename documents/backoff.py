"""Computes how long to wait before a job or an external service is tried again."""

import random

from django.conf import settings

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 600.0
# The longest Retry-After that is honoured. If a service asks for a longer pause, a person should look at it.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def seconds(
    attempt: int, retry_after: float | None = None, *, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS
) -> float:
    """Return the seconds to wait before the next attempt: the Retry-After, or an exponential backoff up to a limit.

    The backoff has jitter, so that attempts that failed at the same time are not all repeated at the same time.
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER_SECONDS)
    most = min(first * 2 ** min(attempt - 1, 20), longest)
    return random.uniform(most / 2, most)  # noqa: S311  # jitter


def job_seconds(attempt: int, retry_after: float | None = None) -> float:
    """Return the pause of a processing job: the usual pause, or the service's Retry-After if that is longer."""
    first, longest = settings.ADE_DOCUMENT_RETRY_SECONDS, settings.ADE_DOCUMENT_RETRY_MAX_SECONDS
    pause = seconds(attempt, first=first, longest=longest)
    return pause if retry_after is None else max(pause, seconds(attempt, retry_after))
