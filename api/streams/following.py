"""Runs one open stream from start to end."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import Error, connection
from django.http import StreamingHttpResponse

from api.streams import sse
from api.streams.access import Access
from api.streams.hub import HUB, UNAVAILABLE, Subscriber
from api.streams.places import Place
from api.streams.sources import Source

# The longest duration of a stream. It limits how long a restarting server waits for streams, and how long a leaked
# stream holds its place.
LONGEST_SECONDS = 300.0
HEARTBEAT_SECONDS = 15.0
# How often access is rechecked, to notice a revoked token or an ended membership.
CHECK_SECONDS = 60.0
# Random share of the durations, so that streams don't all end, and clients don't all reconnect, at the same time.
JITTER = 0.1
RETRY_MILLISECONDS = (1000, 4000)
# If the client has stopped reading, the stream can't send its last message. It is cancelled this long after its end was
# due.
CUT_AFTER_SECONDS = 30.0


# The threads that query the database for all open streams. Each holds a connection while it queries.
POOL = ThreadPoolExecutor(4, thread_name_prefix="streams")

T = TypeVar("T")


async def query(function: Callable[[], T]) -> T:
    """Call a function that queries the database, in one of the shared threads."""

    def call() -> T:
        try:
            return function()
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(POOL, call)


class Stream(StreamingHttpResponse):
    def __init__(self, source: Source, access: Access, place: Place) -> None:
        self._following = Following(source, access, place)
        super().__init__(self._following.messages(), sse.CONTENT_TYPE, headers=sse.HEADERS)

    def close(self) -> None:
        # Free the stream's place here: when a client disconnects, Django closes the response but not the generator.
        self._following.close()
        super().close()


class Following:
    def __init__(self, source: Source, access: Access, place: Place) -> None:
        self._source, self._access, self._place = source, access, place
        now = time.monotonic()
        self._until = now + _with_jitter(LONGEST_SECONDS)
        self._check_at = now + _with_jitter(CHECK_SECONDS)
        self._silent_since = now
        self._subscriber: Subscriber | None = None

    def close(self) -> None:
        """Leave the hub and free the stream's place. Can be called repeatedly and from any thread."""
        if self._subscriber is not None:
            HUB.leave(self._subscriber)
        self._place.free()

    async def messages(self) -> AsyncGenerator[str, None]:
        yield sse.retry(random.randint(*RETRY_MILLISECONDS))  # noqa: S311  # jitter
        task = asyncio.current_task()
        assert task is not None
        cut = task.get_loop().call_at(task.get_loop().time() + self._left() + CUT_AFTER_SECONDS, task.cancel)
        try:
            self._subscriber = subscriber = await HUB.join(self._source.topic, with_log=self._source.with_log)
            if not subscriber.ended:
                yield await query(lambda: self._source.begin(subscriber.position))
            while not (end := await self._end(subscriber)):
                if text := await self._next(subscriber):
                    self._silent_since = time.monotonic()
                    yield text
            yield end
        except Error:
            yield sse.message("again", reason=UNAVAILABLE)
        finally:
            cut.cancel()
            self.close()

    async def _end(self, subscriber: Subscriber) -> str:
        """Return the last message of the stream, or "" while it continues."""
        if self._source.over:
            return sse.message("end", reason=self._source.over)
        if subscriber.is_over:
            return sse.message("again", reason=subscriber.ended)
        if self._left() <= 0:
            return sse.message("again", reason="time")
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + _with_jitter(CHECK_SECONDS)
            if not await query(self._access.is_still_there):
                return sse.message("end", reason="forbidden")
        return ""

    async def _next(self, subscriber: Subscriber) -> str:
        if self._source.is_behind:
            return await query(self._source.read)
        now = time.monotonic()
        patience = self._silent_since + HEARTBEAT_SECONDS - now
        items = await subscriber.wait(min(patience, self._left(), self._check_at - now))
        text = self._source.take(items)
        # If the stream ended with SLOW, its queue was discarded. Send no position then, so that the client resumes from
        # the last event that it received.
        if not text and not subscriber.ended and time.monotonic() >= self._silent_since + HEARTBEAT_SECONDS:
            return sse.HEARTBEAT + (self._source.mark(subscriber.passed) or "\n")
        return text

    def _left(self) -> float:
        return self._until - time.monotonic()


def _with_jitter(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1)  # noqa: S311  # jitter
