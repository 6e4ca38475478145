"""The hub: one thread per web process that polls for new events on behalf of all open streams. While there are no
streams, it sleeps and holds no database connection.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Lock, Thread
from typing import NamedTuple

import structlog
from django.db import Error, connection

from api.streams.sse import Item
from api.streams.stopping import is_stopping
from api.subjects import Workspaces
from work.tail import BATCH, Position, Tail

LOOK_SECONDS = 0.05
# After a time without events, the hub polls at this slower interval. Idle streams then cost only this query, and events
# still arrive with little delay.
QUIET_LOOK_SECONDS, QUIET_AFTER_SECONDS = 0.075, 5.0
# Items that may wait for one client. If more would wait, the client is disconnected; it reconnects and resumes from its
# last ID.
MOST_WAITING = 1000

LOG = "LOG"
STOPPING, UNAVAILABLE, SLOW = "stopping", "unavailable", "slow"

log = structlog.get_logger(__name__)


class Topic(NamedTuple):
    """A subject, or a workspace with all of its subjects."""

    kind: str
    id: int


# All events of all workspaces. A subscriber to this topic must itself drop events that its user may not see.
EVERYTHING = Topic("everything", 0)


class Subscriber:
    """One open stream. Only the stream's event loop touches the queue; the hub's thread schedules calls on it."""

    def __init__(self, topic: Topic, *, with_log: bool) -> None:
        self.topic, self.with_log = topic, with_log
        self.loop = asyncio.get_running_loop()
        self.began: asyncio.Future[None] = self.loop.create_future()
        # The hub's position when the subscriber was admitted.
        self.position = Position()
        # All events up to this position have been put into the queue or skipped.
        self.passed = ""
        self.ended = ""
        self._waiting: list[Item] = []
        self._woken = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return bool(self.ended) and not self._waiting

    async def wait(self, seconds: float) -> Sequence[Item]:
        """Return the queued items, after waiting for at most this many seconds. Once `ended` gives a reason, there will
        be no more items.
        """
        if not self._waiting and not self.ended:
            # An item may arrive just as the timeout expires. It must still be returned, because `passed` has already
            # moved beyond it.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
        self._woken.clear()
        items, self._waiting = self._waiting, []
        return items

    def take(self, items: Sequence[Item]) -> None:
        if not self.ended:
            self._waiting.extend(items)
            if len(self._waiting) > MOST_WAITING:
                self._waiting.clear()
                self.end(SLOW)
            self._woken.set()

    def end(self, why: str) -> None:
        self.ended = self.ended or why
        if not self.began.done():
            self.began.set_result(None)
        self._woken.set()

    def begin(self, position: Position) -> None:
        self.position, self.passed = position, position.to_text()
        if not self.began.done():
            self.began.set_result(None)


class Hub:
    def __init__(self) -> None:
        self.workspaces = Workspaces()
        self._requests: SimpleQueue[tuple[Subscriber, bool]] = SimpleQueue()
        self._woken = Flag()
        self._starting = Lock()
        self._thread: Thread | None = None
        # Only the hub's thread uses these.
        self._joining: set[Subscriber] = set()
        self._subscribers: dict[Topic, set[Subscriber]] = defaultdict(set)
        self._tail: Tail | None = None
        self._failed = False
        self._read_at = 0.0

    async def join(self, topic: Topic, *, with_log: bool = True) -> Subscriber:
        """Add a subscriber. It receives every event that is committed after this function returns."""
        subscriber = Subscriber(topic, with_log=with_log)
        try:
            self._enqueue(subscriber, joins=True)
            await subscriber.began
        except BaseException:
            self.leave(subscriber)
            raise
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        self._enqueue(subscriber, joins=False)

    def _enqueue(self, subscriber: Subscriber, *, joins: bool) -> None:
        self._requests.put((subscriber, joins))
        with self._starting:
            # Start the thread on demand: the process may have been forked after the hub was created, and threads don't
            # survive a fork.
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="streams-hub", daemon=True)
                self._thread.start()
        self._woken.set()

    def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                is_behind = self._round()
                self._failed = False
            except Exception as error:
                self._fail(error)
                continue
            if not self._subscribers:
                self._tail = None
                connection.close()
                self._woken.wait()
            elif not is_behind:
                # A new subscriber also waits until this sleep ends; waking the thread for it would cost as much as a
                # poll.
                is_quiet = time.monotonic() - self._read_at > QUIET_AFTER_SECONDS
                time.sleep(QUIET_LOOK_SECONDS if is_quiet else LOOK_SECONDS)

    def _round(self) -> bool:
        """Deliver new events and admit subscribers. Return whether more events are already waiting to be read."""
        self._admit()
        if is_stopping():
            self._end_all(STOPPING)
        if not self._subscribers and not self._joining:
            return False
        self._tail = self._tail or Tail(Position.now())
        start = self._tail.position
        try:
            is_behind = bool(self._subscribers) and self._deliver(self._tail) >= BATCH
        except BaseException:
            # Go back, so that events that were read but not delivered are read again.
            self._tail = Tail(start)
            raise
        for subscriber in self._joining:
            self._subscribers[subscriber.topic].add(subscriber)
        position = self._tail.position
        self._call((subscriber.loop, partial(subscriber.begin, position)) for subscriber in self._joining)
        self._joining.clear()
        return is_behind

    def _admit(self) -> None:
        with suppress(Empty):
            while True:
                subscriber, joins = self._requests.get_nowait()
                if joins:
                    self._joining.add(subscriber)
                else:
                    self._joining.discard(subscriber)
                    self._forget(subscriber)

    def _deliver(self, tail: Tail) -> int:
        position = tail.position
        events = tail.read()
        if not events:
            return 0
        self._read_at = time.monotonic()
        by_workspace = any(topic.kind == "workspace" or topic == EVERYTHING for topic in self._subscribers)
        workspaces = self.workspaces.of(events) if by_workspace else {}
        for_each: dict[Subscriber, list[Item]] = defaultdict(list)
        for event in events:
            position = position.after(event.id)
            workspace = workspaces.get((event.subject_kind, event.subject_id))
            topics = [EVERYTHING] if workspace is None else [EVERYTHING, Topic("workspace", workspace)]
            receivers = [*self._subscribers.get(Topic(event.subject_kind, event.subject_id), ())]
            for topic in topics:
                subscribers = self._subscribers.get(topic, ())
                receivers += [each for each in subscribers if each.with_log or event.kind != LOG]
            if receivers:
                item = Item(event, position.to_text(), workspace)
                for subscriber in receivers:
                    for_each[subscriber].append(item)
        self._hand_out(for_each, tail.position.to_text())
        return len(events)

    def _hand_out(self, for_each: dict[Subscriber, list[Item]], passed: str) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[Subscriber]] = defaultdict(list)
        for subscriber in self._all():
            by_loop[subscriber.loop].append(subscriber)

        def fill(subscribers: list[Subscriber]) -> None:
            for subscriber in subscribers:
                if items := for_each.get(subscriber):
                    subscriber.take(items)
                subscriber.passed = passed

        self._call((loop, partial(fill, subscribers)) for loop, subscribers in by_loop.items())

    def _call(self, calls: Iterable[tuple[asyncio.AbstractEventLoop, Callable[[], None]]]) -> None:
        for loop, function in list(calls):
            try:
                loop.call_soon_threadsafe(function)
            except RuntimeError:
                # The event loop has stopped. Its streams can no longer leave the hub themselves.
                for subscriber in self._all():
                    if subscriber.loop is loop:
                        self._forget(subscriber)

    def _fail(self, error: Exception) -> None:
        """Handle an error of a round. After a first database error, the hub tries a new connection. After a second one,
        or any other error, it ends all streams; their clients reconnect and wait until the hub can admit them.
        """
        connection.close()
        if isinstance(error, Error):
            log.warning("streams.database_away", error=str(error).strip())
        else:
            log.exception("streams.hub_failed", exc_info=error)
        if self._failed or not isinstance(error, Error):
            self._end_all(UNAVAILABLE)
            self._tail = None
        self._failed = not self._failed

    def _end_all(self, why: str) -> None:
        self._admit()
        ending = [*self._joining, *self._all()]
        self._joining.clear()
        self._subscribers.clear()
        self._call((subscriber.loop, partial(subscriber.end, why)) for subscriber in ending)

    def _all(self) -> list[Subscriber]:
        return [subscriber for subscribers in self._subscribers.values() for subscriber in subscribers]

    def _forget(self, subscriber: Subscriber) -> None:
        if others := self._subscribers.get(subscriber.topic):
            others.discard(subscriber)
            if not others:
                del self._subscribers[subscriber.topic]


HUB = Hub()
