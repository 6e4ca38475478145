"""Limits the number of open streams, per caller and in total, in each web process."""

import weakref
from collections import Counter
from threading import RLock

from api.errors import Problem

OF_ONE_CALLER = 100
OF_ALL = 1000
RETRY_SECONDS = 10


class Places:
    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        # Reentrant, because a finalizer can run at any moment in any thread, even in one that already holds the lock.
        self._lock = RLock()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, caller: str) -> "Place":
        headers = {"Retry-After": str(RETRY_SECONDS)}
        with self._lock:
            if self._taken[caller] >= OF_ONE_CALLER:
                message = f"Too many open streams: the limit is {OF_ONE_CALLER} per caller. Close one first."
                raise Problem("rate_limited", message, {"streams": OF_ONE_CALLER}, headers=headers)
            if self._taken.total() >= OF_ALL:
                message = "The server has too many open streams. Try again in a moment."
                raise Problem("unavailable", message, headers=headers)
            self._taken[caller] += 1
        return Place(self, caller)

    def release(self, caller: str) -> None:
        with self._lock:
            self._taken[caller] -= 1
            # Adding an empty counter removes callers whose count is zero.
            self._taken += Counter()


class Place:
    """The place of one stream. It is freed when the stream ends, or at the latest when it is garbage collected: if the
    client disconnects before the response starts, the stream never runs and so never ends.
    """

    def __init__(self, places: Places, caller: str) -> None:
        self.free = weakref.finalize(self, places.release, caller)


PLACES = Places()
