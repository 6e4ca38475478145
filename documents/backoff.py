"""How long a job waits before its next attempt."""

import random

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 600.0
# A server that asks for more than this is not obeyed to the letter: somebody should look.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def seconds(
    attempt: int, retry_after: float | None = None, *, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS
) -> float:
    """Capped and exponential, with jitter so that what failed together does not come back together."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER_SECONDS)
    most = min(first * 2 ** min(attempt - 1, 20), longest)
    return random.uniform(most / 2, most)  # noqa: S311  # jitter
