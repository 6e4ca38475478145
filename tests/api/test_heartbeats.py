"""A client may reconnect with the ID of a heartbeat: it must never cover events that were not sent."""

import asyncio
import time

import pytest

from api.streams.following import HEARTBEAT_SECONDS, Following
from api.streams.hub import MOST_WAITING, SLOW, Hub, Subscriber
from api.streams.sources import OfWorkspace
from api.streams.sse import HEARTBEAT, Item
from work import clock
from work.tail import EventRow, Position

pytestmark = pytest.mark.edge


def items(count):
    return [
        Item(EventRow(id, "run", 5, id, clock.now(), "NOTE", "", "", 0, "olga", 20, "", {}), str(id))
        for id in range(1, count + 1)
    ]


class Opened:
    """A workspace stream whose heartbeat is due."""

    def __init__(self):
        source = OfWorkspace(1, "", with_log=True)
        source.begin(Position())
        self.subscriber = Subscriber(source.topic, with_log=True)
        self.hub = Hub()
        self.hub._subscribers[source.topic].add(self.subscriber)
        self.following = Following(source, None, None)
        self.following._silent_since = time.monotonic() - HEARTBEAT_SECONDS

    async def told_when_it_is_over(self, come):
        """Return what the stream sends if these events arrive after its timeout, but before it notices the timeout."""
        telling = asyncio.create_task(self.following._next(self.subscriber))
        # Now it waits, and its timeout is the next thing that the loop handles.
        await asyncio.sleep(0)
        for some in come:
            self.hub._hand_out({self.subscriber: some}, some[-1].position if some else "9")
        return await telling


@pytest.mark.parametrize("count", [1, 3])
def test_what_comes_when_a_heartbeat_is_due_is_told(count):
    come = items(count)

    async def follow():
        return await Opened().told_when_it_is_over([come])

    assert asyncio.run(follow()) == "".join(item.by_position for item in come)


def test_a_heartbeat_has_the_id_up_to_which_there_was_nothing_to_tell():
    async def follow():
        return await Opened().told_when_it_is_over([[]])

    assert asyncio.run(follow()) == f"{HEARTBEAT}id: 9\n\n"


def test_one_that_was_too_slow_is_given_no_id_of_what_it_was_not_told():
    come = items(MOST_WAITING + 1)

    async def follow():
        opened = Opened()
        told = await opened.told_when_it_is_over([come[:600], come[600:]])
        return told, opened.subscriber.ended, await opened.following._end(opened.subscriber)

    told, ended, end = asyncio.run(follow())

    assert (told, ended) == ("", SLOW)
    assert end == 'event: again\ndata: {"reason":"slow"}\n\n'
