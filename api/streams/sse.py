"""The wire format of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from functools import cached_property
from typing import Any

from api.rendering import text_of
from work.tail import EventRow

HEADERS = {"Cache-Control": "private, no-store", "X-Accel-Buffering": "no"}
CONTENT_TYPE = "text/event-stream; charset=utf-8"
# A comment line, sent to keep proxies from closing an idle connection.
HEARTBEAT = ": still there\n"
# The fields of an event that clients receive.
FIELDS = tuple(name for name in EventRow._fields if name != "claim_token")


class Item:
    """One event on its way to many subscribers. Its text is rendered only once for all of them."""

    __slots__ = ("__dict__", "event", "position", "workspace")

    def __init__(self, event: EventRow, position: str, workspace: int | None = None) -> None:
        # `position` is the position in the table of events after this event.
        self.event, self.position = event, position
        # None if the event belongs to the installation, or if no subscriber needs to know the workspace.
        self.workspace = workspace

    @cached_property
    def data(self) -> str:
        return f"data: {_json({name: getattr(self.event, name) for name in FIELDS})}\n\n"

    @cached_property
    def by_position(self) -> str:
        return f"id: {self.position}\n{self.data}"

    @cached_property
    def by_sequence(self) -> str:
        return f"id: {self.event.sequence}\n{self.data}"


def message(name: str, **data: Any) -> str:
    """Return a message about the stream itself. It has no ID, so the client's last ID stays the same."""
    return f"event: {name}\ndata: {_json(data)}\n\n"


def id_only(id: str) -> str:
    """Return an ID without data. A client dispatches no event for it, but resumes from this ID."""
    return f"id: {id}\n\n"


def retry(milliseconds: int) -> str:
    return f"retry: {milliseconds}\n\n"


def _json(value: Any) -> str:
    return text_of(value, separators=(",", ":"))
