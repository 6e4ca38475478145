"""Events of a run or a build, filtered by kind and level, and its log as lines of text."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Schema
from pydantic import ConfigDict, Field

from api.histories import History
from api.ids import MOST
from api.rendering import text_of
from work.journal import LOG
from work.models import Event

LINES, MOST_LINES = 1000, 5000
# Limit of a response, because lines may be long.
MOST_BYTES = 1 << 20
TYPES = {"text": "text/plain; charset=utf-8", "json": "application/jsonl"}
LAST, MORE = "X-Last-Sequence", "X-More"
LINES_OF_TEXT: dict[str, Any] = {
    "responses": {
        200: {
            "description": f"The lines. {LAST} has the sequence of the last line, and {MORE} whether there are more.",
            "content": {name.partition(";")[0]: {"schema": {"type": "string"}} for name in TYPES.values()},
            "headers": {LAST: {"schema": {"type": "integer"}}, MORE: {"schema": {"enum": ["true", "false"]}}},
        }
    }
}


class Told(History):
    kind: Annotated[str | None, Field(max_length=40, pattern="^[A-Z_]+$", description="only events of this kind")] = (
        None
    )
    level: Annotated[int | None, Field(ge=0, le=100, description="only events of this level or above")] = None

    def more(self) -> dict[str, Any]:
        asked = {"kind": self.kind, "level__gte": self.level}
        return {name: value for name, value in asked.items() if value is not None}


class Lines(Schema):
    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, le=MOST, description="only events with a higher sequence")] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_LINES, description="events per response")] = LINES
    stream: Literal["stdout", "stderr", "log"] | None = None
    format: Annotated[Literal["text", "json"], Field(description="plain lines, or one JSON object per line")] = "text"


def log_of(kind: str, id: int, asked: Lines) -> HttpResponseBase:
    """Return the log as a response. The caller must have checked that the row is visible."""
    events = Event.objects.about(kind, id).filter(kind=LOG, sequence__gt=asked.after)
    found = list(events.order_by("sequence")[: asked.limit + 1])
    shown = _bounded(found[: asked.limit])
    lines = [_line(event, asked) for event in shown if asked.stream in (None, _stream(event))]
    answer = HttpResponse("".join(f"{line}\n" for line in lines), TYPES[asked.format])
    answer[LAST] = str(shown[-1].sequence if shown else asked.after)
    answer[MORE] = "true" if len(found) > len(shown) else "false"
    return answer


def _bounded(events: Sequence[Event]) -> Sequence[Event]:
    """Limit the events by size, but return at least one, or the client could never get past a long line."""
    room = MOST_BYTES
    for number, event in enumerate(events):
        room -= len(event.message.encode())
        if room < 0:
            return events[: max(1, number)]
    return events


def _line(event: Event, asked: Lines) -> str:
    if asked.format == "text":
        return event.message
    told: dict[str, str | int | datetime | None] = {
        "sequence": event.sequence,
        "at": event.at,
        "stream": _stream(event),
    }
    told |= {"step": (event.data or {}).get("step") or None, "message": event.message}
    return text_of(told)


def _stream(event: Event) -> str:
    return str((event.data or {}).get("stream", "log"))
