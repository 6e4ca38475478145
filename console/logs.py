"""The log of a run or a build for pages: its last lines, or the lines that contain a text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from console.frame import show
from work.journal import LOG
from work.models import Event
from work.operations.commands import clean

LINES = 200
# On the page of a log; the download has all lines.
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
    if request.GET.get("format") == "text":
        headers = {"Content-Disposition": f'attachment; filename="{kind}-{id}.log"'}
        return HttpResponse(_as_text(kind, id), "text/plain; charset=utf-8", headers=headers)
    wanted = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_LINE]
    context = {"log": log_of(kind, id, wanted), "wanted": wanted, "back": back, "about": title}
    live = reverse("console:live_one", args=[kind, id])
    return show(request, "console/log.html", f"Log of {title.lower()}", context, live=live)


def last_lines(kind: str, id: int, most: int = LINES) -> Log:
    return log_of(kind, id, "", most)


def log_of(kind: str, id: int, wanted: str, most: int = MOST_LINES) -> Log:
    """Return the last lines, or the last lines that contain this text, oldest first."""
    events = Event.objects.about(kind, id).filter(kind=LOG)
    if wanted:
        events = events.filter(message__icontains=wanted)
    found = list(events.order_by("-sequence").only("sequence", "at", "message", "data")[: most + 1])
    lines = [_line(event) for event in reversed(found[:most])]
    return Log(lines, len(found) > most)


def _as_text(kind: str, id: int) -> Iterator[str]:
    events = Event.objects.about(kind, id).filter(kind=LOG).order_by("sequence")
    return (f"{message}\n" for message in events.values_list("message", flat=True).iterator(LINES))


def _line(event: Event) -> Line:
    data = event.data if isinstance(event.data, dict) else {}
    stream, step = str(data.get("stream", "log")), str(data.get("step") or "")
    # Escape control characters, which a terminal would interpret if the text is pasted.
    text = clean(event.message.expandtabs())[:LONGEST_LINE]
    return Line(event.sequence, event.at, stream, clean(step), text)
