"""Limits of time and bytes for one whole fetch: name resolution, connections, certificates, redirects, headers and
chunk framing included.
"""

import time

from feeds.fetching.outcome import FetchFailed


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the remaining seconds, always more than 0. Raises FetchFailed if the time is over."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> FetchFailed:
        return FetchFailed("too_slow", f"The answer was not complete within {self._seconds:g} s.")


class Meter:
    """Counts bytes as they come from the network. Bytes that produce no content also take time to read."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0

    def allow(self, more_bytes: int) -> None:
        self._most_bytes += more_bytes

    def count(self, number: int) -> None:
        """Count more bytes. Raises FetchFailed if there are too many."""
        self._bytes += number
        if self._bytes > self._most_bytes:
            raise FetchFailed("too_large", f"The server sent more than {self._most_bytes} bytes.")
