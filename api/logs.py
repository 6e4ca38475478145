"""Lists the events of a run or build, filtered by kind and level, and returns its log as lines of text or JSON."""

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
# Responses are limited by size as well as by number of lines, because lines may be long.
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


class Events(History):
    kind: Annotated[str | None, Field(max_length=40, pattern="^[A-Z_]+$", description="only events of this kind")] = (
        None
    )
    level: Annotated[int | None, Field(ge=0, le=100, description="only events of this level or above")] = None

    def more(self) -> dict[str, Any]:
        filters = {"kind": self.kind, "level__gte": self.level}
        return {name: value for name, value in filters.items() if value is not None}


class Lines(Schema):
    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, le=MOST, description="only events with a higher sequence")] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_LINES, description="events per response")] = LINES
    stream: Literal["stdout", "stderr", "log"] | None = None
    format: Annotated[Literal["text", "json"], Field(description="plain lines, or one JSON object per line")] = "text"


def log_of(kind: str, id: int, query: Lines) -> HttpResponseBase:
    """Return the log as a response. The caller must have checked that the row is visible."""
    rows = Event.objects.about(kind, id).filter(kind=LOG, sequence__gt=query.after)
    events = list(rows.order_by("sequence")[: query.limit + 1])
    shown: list[Event] = []
    room = MOST_BYTES
    for event in events[: query.limit]:
        room -= len(event.message.encode())
        # Send at least one event, or the client could never get past a long line.
        if room < 0 and shown:
            break
        shown.append(event)
    lines = []
    for event in shown:
        data = event.data or {}
        stream = str(data.get("stream", "log"))
        if query.stream not in (None, stream):
            continue
        if query.format == "text":
            lines.append(event.message)
            continue
        line = {"sequence": event.sequence, "at": event.at, "stream": stream, "step": data.get("step") or None}
        lines.append(text_of(line | {"message": event.message}))
    response = HttpResponse("".join(f"{line}\n" for line in lines), TYPES[query.format])
    response[LAST] = str(shown[-1].sequence if shown else query.after)
    response[MORE] = "true" if len(events) > len(shown) else "false"
    return response
