"""Processor time scaled to a reference machine: a shared machine may be three times slower at times."""

import time

# The duration of the reference loop on an idle machine with two cores, November 2026.
USUAL_SECONDS = 0.012


def since(began: float) -> float:
    """Return the seconds of this process since then by `time.process_time()`, as on that idle machine."""
    return usual(time.process_time() - began)


def usual(seconds: float) -> float:
    """Return how many seconds of processor time these would have been on that idle machine."""
    return seconds * min(1.0, USUAL_SECONDS / _reference_seconds())


def _reference_seconds() -> float:
    began = time.process_time()
    total = 0
    for number in range(200_000):
        total += number * number
    return time.process_time() - began
