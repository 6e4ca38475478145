"""Rate limits: a token bucket for each caller and kind of request.

Each web process has its own buckets, with its share of the limit. Processes share no state and never wait for each
other; a restart forgets at most a minute's worth of requests.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from django.conf import settings
from django.http import HttpRequest

from api.errors import Problem

MINUTE = 60.0
# Beyond this number, the least recently used bucket is dropped. Its caller then starts again with a full one.
MOST_BUCKETS = 10_000
# Requests with unknown tokens per minute and origin. No person mistypes a token this often.
UNKNOWN_TOKENS = 60
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass
class Bucket:
    left: float
    at: float
    # Whether the previous request was refused.
    is_empty: bool = False


class Buckets:
    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_BUCKETS) -> None:
        self._clock, self._most, self._lock = clock, most, Lock()
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, kind: str, who: str, per_minute: float) -> float:
        """Take one request from the bucket. Return 0, or how many seconds to wait."""
        with self._lock:
            now = self._clock()
            bucket = self._buckets.get((kind, who))
            if bucket is None:
                bucket = self._buckets[kind, who] = Bucket(max(1.0, per_minute), now)
                if len(self._buckets) > self._most:
                    self._buckets.popitem(last=False)
            self._buckets.move_to_end((kind, who))
            bucket.left = min(max(1.0, per_minute), bucket.left + (now - bucket.at) * per_minute / MINUTE)
            bucket.at = now
            if bucket.left >= 1:
                bucket.left -= 1
                bucket.is_empty = False
                return 0.0
            return (1 - bucket.left) * MINUTE / per_minute

    def is_first_refusal(self, kind: str, who: str) -> bool:
        """Return whether this is the first refusal since the last accepted request. Call it once per refusal."""
        with self._lock:
            bucket = self._buckets.get((kind, who))
            is_first = bucket is not None and not bucket.is_empty
            if bucket:
                bucket.is_empty = True
            return is_first

    def forget(self) -> None:
        with self._lock:
            self._buckets.clear()


BUCKETS = Buckets()


class RateLimited(Problem):
    def __init__(self, kind: str, who: str, per_minute: int, seconds: float) -> None:
        wait = math.ceil(seconds)
        message = f"Too many requests: the limit is {per_minute} {kind} per minute. Try again in {wait} s."
        details = {"kind": kind, "per_minute": per_minute, "retry_after_seconds": wait}
        super().__init__("rate_limited", message, details, headers={"Retry-After": str(wait)})
        # Only the first of consecutive refusals is audited, so that refusing a request costs less than serving it.
        self.is_first = BUCKETS.is_first_refusal(kind, who)


def check(request: HttpRequest, who: str) -> None:
    kind = kind_of(request)
    limit = {"reads": settings.ADE_RATE_READS, "writes": settings.ADE_RATE_WRITES, "uploads": settings.ADE_RATE_UPLOADS}
    if limit[kind]:
        _take(kind, who, limit[kind])


def check_stranger(origin: str) -> None:
    """Limit requests with unknown tokens, without affecting requests with a known token from the same address."""
    _take("unknown tokens", origin, UNKNOWN_TOKENS)


def kind_of(request: HttpRequest) -> str:
    if request.method in SAFE:
        return "reads"
    return "writes" if request.content_type in ("", "application/json") else "uploads"


def _take(kind: str, who: str, per_minute: int) -> None:
    if wait := BUCKETS.take(kind, who, per_minute / settings.WEB_CONCURRENCY):
        raise RateLimited(kind, who, per_minute, wait)
