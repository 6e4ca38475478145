"""How long a job waits before its next attempt."""

import random

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 600.0
# A server that asks for more than this is not obeyed to the letter: somebody should look.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def seconds(attempt: int, retry_after: float | None = None) -> float:
    """Capped and exponential, with jitter so that what failed together does not come back together."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER_SECONDS)
    longest = min(FIRST_SECONDS * 2 ** min(attempt - 1, 10), LONGEST_SECONDS)
    return random.uniform(longest / 2, longest)  # noqa: S311  # jitter
