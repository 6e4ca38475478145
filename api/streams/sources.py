"""The sources of streams. A source decides what a stream sends, and with which IDs a client can resume.

A source first reads the events since the client's last ID from the database, then takes the events that the hub
delivers. The stream joins the hub before the source reads, so no event is missed; events that come both ways are sent
once.
"""

from collections.abc import Sequence
from typing import Protocol

from django.db.models import Q

from api.errors import Problem
from api.streams.hub import HUB, LOG, Topic
from api.streams.sse import Item, id_only, message
from work.models import Event
from work.state_machine import StateMachine
from work.tail import BATCH, EventRow, Position, Tail, newest

# A reconnecting client is sent at most this many events, which take one or two seconds to read. A client further behind
# catches up faster with the lists.
MOST_BEHIND = 100_000
FINISHED, GONE = "finished", "gone"


class Source(Protocol):
    topic: Topic
    with_log: bool
    # True while `read` must be called next. False once all further events come from the hub.
    is_behind: bool
    # Why the source has ended; "" until it has.
    over: str

    def begin(self, position: Position) -> str:
        """Start at the hub's position and return the first message. Queries the database."""

    def read(self) -> str:
        """Return the next events. Queries the database."""

    def take(self, items: Sequence[Item]) -> str: ...

    def mark(self, passed: str) -> str:
        """Return a message that moves the client's last ID forward after a time without events to send."""


class OfSubject:
    """All events of one subject. Their IDs are sequences. The stream ends when the subject reaches a terminal status,
    if its kind has one.
    """

    with_log = True

    def __init__(self, states: StateMachine, id: int, terminal: frozenset[str], last: str) -> None:
        self.topic = Topic(states.kind, id)
        self.is_behind, self.over = True, ""
        self._row = states.rows.filter(pk=id).values_list("status", "last_sequence")
        self._events = Event.objects.about(states.kind, id).order_by("sequence")
        self._terminal, self._last = terminal, 0
        if last:
            if not (last.isascii() and last.isdecimal() and len(last) <= 9):
                raise _unknown_id(last)
            self._last = int(last)

    def begin(self, position: Position) -> str:
        row = self._row.first()
        if row is not None and self._last > row[1]:
            self._last = 0
            return message("reset", reason="Unknown event ID. All events follow.")
        return ""

    def read(self) -> str:
        # Load the row before the events, so that all events up to its `last_sequence` are visible.
        row = self._row.first()
        if row is None:
            self.over = GONE
            return ""
        after = Q(sequence__gt=self._last)
        items = [
            Item(EventRow(*each), "") for each in self._events.filter(after).values_list(*EventRow._fields)[:BATCH]
        ]
        if items:
            self._last = items[-1].event.sequence
        # More events may have been written since the row was loaded, and the subject may have ended with one of them.
        self.is_behind = len(items) == BATCH or self._last > row[1]
        if not self.is_behind and row[0] in self._terminal:
            self.over = FINISHED
        return "".join(item.by_sequence for item in items)

    def take(self, items: Sequence[Item]) -> str:
        messages = []
        for item in items:
            if item.event.sequence <= self._last:
                continue
            # Read the row to decide whether this is the end: the build may have been queued again.
            if item.event.sequence > self._last + 1 or item.event.to_status in self._terminal:
                self.is_behind = True
                break
            messages.append(item.by_sequence)
            self._last = item.event.sequence
        return "".join(messages)

    def mark(self, passed: str) -> str:
        return ""


class OfWorkspace:
    """All events of a workspace's subjects. Their IDs are positions in the table of events."""

    over = ""

    def __init__(self, workspace_id: int, last: str, *, with_log: bool) -> None:
        self.topic, self.with_log = Topic("workspace", workspace_id), with_log
        self.is_behind = False
        try:
            self._came_from = Position.from_text(last) if last else None
        except ValueError as error:
            raise _unknown_id(last) from error
        self._tail = Tail(Position())
        # All events up to this position have been sent or skipped.
        self._seen = Position()
        self._marked = ""

    def begin(self, position: Position) -> str:
        self._marked = position.to_text()
        if self._came_from is None:
            return id_only(self._marked)
        top = newest()
        if self._came_from.last > top or top - self._came_from.floor > MOST_BEHIND:
            reason = "The event ID is too old. Read the missed events from the lists; new events follow."
            return message("reset", reason=reason) + id_only(self._marked)
        self._tail, self.is_behind = Tail(self._came_from), True
        return ""

    def read(self) -> str:
        position = self._tail.position
        events = self._tail.read()
        workspaces = HUB.workspaces.of(events)
        messages = []
        for event in events:
            position = position.after(event.id)
            is_ours = workspaces.get((event.subject_kind, event.subject_id)) == self.topic.id
            if is_ours and (self.with_log or event.kind != LOG):
                messages.append(Item(event, position.to_text()).by_position)
        self.is_behind, self._seen = bool(events), self._tail.position
        # If none of these events belongs to the workspace, send only the position, so that the client does not cause
        # them to be read again.
        return "".join(messages) or (id_only(self._seen.to_text()) if events else "")

    def take(self, items: Sequence[Item]) -> str:
        return "".join(item.by_position for item in items if item.event.id not in self._seen)

    def mark(self, passed: str) -> str:
        if passed == self._marked:
            return ""
        self._marked = passed
        return id_only(passed)


def _unknown_id(text: str) -> Problem:
    message = "Last-Event-ID is not an ID of this stream."
    return Problem("invalid_request", message, {"last_event_id": text[:100]})
