"""The log of a run or build as pages show it: the last lines, or the lines that contain a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from console.frame import show
from work.journal import LOG
from work.models import Event
from work.operations.commands import clean

LINES = 200
# Lines on the page of a log. The download has all lines.
MOST_LINES = 2000
LONGEST_LINE = 2000


@dataclass(frozen=True)
class Line:
    sequence: int
    at: datetime
    stream: str
    step: str
    text: str


@dataclass(frozen=True)
class Log:
    lines: Sequence[Line]
    # Whether earlier lines are left out.
    is_cut: bool


def log_page(request: HttpRequest, kind: str, id: int, title: str, back: str) -> HttpResponseBase:
    """Return the page of a log. The caller must have checked that the row is visible."""
    events = Event.objects.about(kind, id).filter(kind=LOG)
    if request.GET.get("format") == "text":
        headers = {"Content-Disposition": f'attachment; filename="{kind}-{id}.log"'}
        messages = events.order_by("sequence").values_list("message", flat=True).iterator(LINES)
        lines = (f"{message}\n" for message in messages)
        return HttpResponse(lines, "text/plain; charset=utf-8", headers=headers)
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_LINE]
    if text:
        events = events.filter(message__icontains=text)
    context = {"log": _log(events, MOST_LINES), "text": text, "back": back, "about": title}
    live = reverse("console:live_one", args=[kind, id])
    return show(request, "console/log.html", f"Log of {title.lower()}", context, live=live)


def last_lines(kind: str, id: int, most: int = LINES) -> Log:
    return _log(Event.objects.about(kind, id).filter(kind=LOG), most)


def _log(events: Any, most: int) -> Log:
    """Return the last `most` of these events as lines, oldest first."""
    rows = list(events.order_by("-sequence").only("sequence", "at", "message", "data")[: most + 1])
    lines = []
    for event in reversed(rows[:most]):
        data = event.data if isinstance(event.data, dict) else {}
        stream, step = str(data.get("stream", "log")), str(data.get("step") or "")
        # Escape control characters, which a terminal would interpret if someone pastes the text.
        text = clean(event.message.expandtabs())[:LONGEST_LINE]
        lines.append(Line(event.sequence, event.at, stream, clean(step), text))
    return Log(lines, len(rows) > most)
