"""How events look on the wire: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from functools import cached_property
from typing import Any

from api.rendering import text_of
from work.tail import Seen

HEADERS = {"Cache-Control": "private, no-store", "X-Accel-Buffering": "no"}
CONTENT_TYPE = "text/event-stream; charset=utf-8"
# A comment. What stands between does not close a connection that is used.
HEARTBEAT = ": still there\n"
# Told by the id that each event of a stream has.
TOLD = (*(name for name in Seen._fields if name not in ("claim_token",)),)


class Item:
    """One event on its way to many: what they all get is written once."""

    __slots__ = ("__dict__", "event", "position", "workspace")

    def __init__(self, event: Seen, position: str, workspace: int | None = None) -> None:
        # After this event, of all events.
        self.event, self.position = event, position
        # None for what belongs to the installation, and where nobody has asked.
        self.workspace = workspace

    @cached_property
    def data(self) -> str:
        return f"data: {_json({name: getattr(self.event, name) for name in TOLD})}\n\n"

    @cached_property
    def by_position(self) -> str:
        return f"id: {self.position}\n{self.data}"

    @cached_property
    def by_sequence(self) -> str:
        return f"id: {self.event.sequence}\n{self.data}"


def message(name: str, **data: Any) -> str:
    """What the stream says of itself. Its id stays as it was."""
    return f"event: {name}\ndata: {_json(data)}\n\n"


def id_only(id: str) -> str:
    """Nobody hears of it, but whoever comes again comes from here."""
    return f"id: {id}\n\n"


def retry(milliseconds: int) -> str:
    return f"retry: {milliseconds}\n\n"


def _json(value: Any) -> str:
    return text_of(value, separators=(",", ":"))
