"""How many streams may be open, so that nobody takes all there is. Counted in each web process."""

import weakref
from collections import Counter
from threading import RLock

from api.errors import Problem

OF_ONE_CALLER = 100
OF_ALL = 1000
COME_AGAIN_SECONDS = 10


class Places:
    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        # One that may be taken twice: what is forgotten can be collected at any moment, in any thread.
        self._lock = RLock()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, caller: str) -> "Place":
        headers = {"Retry-After": str(COME_AGAIN_SECONDS)}
        with self._lock:
            if self._taken[caller] >= OF_ONE_CALLER:
                message = f"expected at most {OF_ONE_CALLER} open streams, found as many; close one first"
                raise Problem("rate_limited", message, {"streams": OF_ONE_CALLER}, headers=headers)
            if self._taken.total() >= OF_ALL:
                raise Problem("unavailable", "expected fewer open streams, found as many as may be", headers=headers)
            self._taken[caller] += 1
        return Place(self, caller)

    def _free(self, caller: str) -> None:
        with self._lock:
            self._taken[caller] -= 1
            # Zero and less: whoever has none is not kept.
            self._taken += Counter()


class Place:
    """Freed when its stream has ended, and at the latest when it is forgotten: a client that goes away before the
    answer leaves a stream that nobody has begun.
    """

    def __init__(self, places: Places, caller: str) -> None:
        self.free = weakref.finalize(self, places._free, caller)


PLACES = Places()
