"""Limits the time and the bytes of one whole fetch, including name resolution, connections, certificates, redirects,
headers and chunk framing.
"""

import time

from feeds.fetching.outcome import FetchFailed


class Budget:
    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds, self._most_bytes = seconds, most_bytes
        self._deadline = time.monotonic() + seconds
        self._bytes = 0

    def seconds_left(self) -> float:
        """Return the remaining seconds, always more than 0. Raises FetchFailed if the time is over."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self.too_slow()
        return left

    def too_slow(self) -> FetchFailed:
        return FetchFailed("too_slow", f"The answer was not complete within {self._seconds:g} s.")

    def allow_bytes(self, number: int) -> None:
        self._most_bytes += number

    def count_bytes(self, number: int) -> None:
        """Count bytes as they come from the network, because bytes that produce no content also take time to read.
        Raises FetchFailed if there are too many.
        """
        self._bytes += number
        if self._bytes > self._most_bytes:
            raise FetchFailed("too_large", f"The server sent more than {self._most_bytes} bytes.")
