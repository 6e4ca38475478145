"""What a stream tells, and by which ids whoever comes again goes on.

Each first reads what has been since that id, from the database, and then takes what the hub hands out. The hub is
joined before: what comes twice is passed over, and nothing is missed in between.
"""

from collections.abc import Sequence
from typing import Protocol

from django.db.models import Q

from api.errors import Problem
from api.streams.hub import HUB, LOG, Topic
from api.streams.sse import Item, id_only, message
from work.models import Event
from work.moves import Moves
from work.tail import BATCH, Position, Seen, Tail, newest

# What somebody who comes again is told of, who had been away: a second or two of reading. Beyond, lists tell it faster.
MOST_BEHIND = 100_000
FINISHED, GONE = "finished", "gone"


class Source(Protocol):
    topic: Topic
    with_log: bool
    # Whether `read` is to be asked next; otherwise there is nothing but what the hub hands out.
    is_behind: bool
    # Why there is nothing more to come.
    over: str

    def begin(self, position: Position) -> str:
        """Asks the database. From here on, the hub hands out what comes."""

    def read(self) -> str:
        """Asks the database."""

    def take(self, items: Sequence[Item]) -> str: ...

    def mark(self, passed: str) -> str:
        """For whoever comes again, when there has been nothing to tell of."""


class OfSubject:
    """All events of one subject, by their sequence; to the end of it, if its kind has one."""

    with_log = True

    def __init__(self, moves: Moves, id: int, terminal: frozenset[str], last: str) -> None:
        self.topic = Topic(moves.kind, id)
        self.is_behind, self.over = True, ""
        self._row = moves.rows.filter(pk=id).values_list("status", "last_sequence")
        self._events = Event.objects.about(moves.kind, id).order_by("sequence")
        self._terminal, self._last = terminal, _number(last) if last else 0

    def begin(self, position: Position) -> str:
        row = self._row.first()
        if row is not None and self._last > row[1]:
            self._last = 0
            return message("reset", reason="expected an id that this stream has given; all events follow")
        return ""

    def read(self) -> str:
        # Asked before its events: those that this row counts can be seen then.
        row = self._row.first()
        if row is None:
            self.over = GONE
            return ""
        after = Q(sequence__gt=self._last)
        found = [Item(Seen(*each), "") for each in self._events.filter(after).values_list(*Seen._fields)[:BATCH]]
        if found:
            self._last = found[-1].event.sequence
        # What has come since then may be its end.
        self.is_behind = len(found) == BATCH or self._last > row[1]
        if not self.is_behind and row[0] in self._terminal:
            self.over = FINISHED
        return "".join(item.by_sequence for item in found)

    def take(self, items: Sequence[Item]) -> str:
        told = []
        for item in items:
            if item.event.sequence <= self._last:
                continue
            # Whether it is the end, the row knows: a build may have been queued again.
            if item.event.sequence > self._last + 1 or item.event.to_status in self._terminal:
                self.is_behind = True
                break
            told.append(item.by_sequence)
            self._last = item.event.sequence
        return "".join(told)

    def mark(self, passed: str) -> str:
        return ""


class OfWorkspace:
    """All events of all subjects of a workspace. Their ids are positions in the table of all events."""

    over = ""

    def __init__(self, workspace_id: int, last: str, *, with_log: bool) -> None:
        self.topic, self.with_log = Topic("workspace", workspace_id), with_log
        self.is_behind = False
        self._came_from = _position(last) if last else None
        self._tail = Tail(Position())
        # By now, one of these has been told if it was to be.
        self._seen = Position()
        self._marked = ""

    def begin(self, position: Position) -> str:
        self._marked = position.to_text()
        if self._came_from is None:
            return id_only(self._marked)
        top = newest()
        if self._came_from.last > top or top - self._came_from.floor > MOST_BEHIND:
            reason = "expected an id that is not so old; ask the lists what has happened since, new events follow"
            return message("reset", reason=reason) + id_only(self._marked)
        self._tail, self.is_behind = Tail(self._came_from), True
        return ""

    def read(self) -> str:
        position = self._tail.position
        events = self._tail.read()
        workspaces = HUB.workspaces.of(events)
        told = []
        for event in events:
            position = position.after(event.id)
            is_ours = workspaces.get((event.subject_kind, event.subject_id)) == self.topic.id
            if is_ours and (self.with_log or event.kind != LOG):
                told.append(Item(event, position.to_text()).by_position)
        self.is_behind, self._seen = bool(events), self._tail.position
        # Nothing of all this was ours, and still nobody should read it again.
        return "".join(told) or (id_only(self._seen.to_text()) if events else "")

    def take(self, items: Sequence[Item]) -> str:
        return "".join(item.by_position for item in items if item.event.id not in self._seen)

    def mark(self, passed: str) -> str:
        if passed == self._marked:
            return ""
        self._marked = passed
        return id_only(passed)


def _position(text: str) -> Position:
    try:
        return Position.from_text(text)
    except ValueError as error:
        raise _not_given(text) from error


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return int(text)
    raise _not_given(text)


def _not_given(text: str) -> Problem:
    message = "expected as Last-Event-ID an id that this stream has given, found another one"
    return Problem("invalid_request", message, {"last_event_id": text[:100]})
