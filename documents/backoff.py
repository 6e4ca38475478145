"""Computes how long a job waits before its next attempt."""

import random

from django.conf import settings

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 600.0
# Upper limit for a Retry-After. A person should look at a service that asks for more.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def seconds(
    attempt: int, retry_after: float | None = None, *, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS
) -> float:
    """Return the seconds to wait, with exponential backoff, a cap, and jitter to spread simultaneous failures."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER_SECONDS)
    most = min(first * 2 ** min(attempt - 1, 20), longest)
    return random.uniform(most / 2, most)  # noqa: S311  # jitter


def job_seconds(attempt: int, retry_after: float | None = None) -> float:
    """Return the pause of a processing job: the one that the service asks for, but at least the usual one."""
    first, longest = settings.ADE_DOCUMENT_RETRY_SECONDS, settings.ADE_DOCUMENT_RETRY_MAX_SECONDS
    pause = seconds(attempt, first=first, longest=longest)
    return pause if retry_after is None else max(pause, seconds(attempt, retry_after))
