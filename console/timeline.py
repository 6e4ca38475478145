"""The timeline of a run as bars: the wait, the build, and the steps with their attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builds.models import Build
from runs.models import Run
from work import clock
from work.models import Event

# In units of the chart.
WIDTH = 1000
NARROWEST = 3
MOST_BARS = 60
_TONES = {"STEP_SUCCEEDED": "good", "STEP_FAILED": "bad", "STEP_RETRIED": "warn"}
_BUILD_TONES: dict[str, str] = {Build.Status.READY: "good", Build.Status.FAILED: "bad", Build.Status.BUILDING: "busy"}


@dataclass(frozen=True)
class Bar:
    name: str
    tone: str
    began_at: datetime
    ended_at: datetime
    note: str = ""
    is_open: bool = False

    @property
    def seconds(self) -> float:
        return (self.ended_at - self.began_at).total_seconds()


@dataclass(frozen=True)
class Row:
    """A bar with its position and width on the chart."""

    bar: Bar
    x: float
    width: float


@dataclass(frozen=True)
class Part:
    """Bars that share a scale. Each part has its own scale, because a run may wait for minutes and then work for
    milliseconds.
    """

    title: str
    rows: Sequence[Row]
    seconds: float
    # How many bars are not shown.
    left_out: int


def timeline_of(run: Run, events: Any) -> Sequence[Part]:
    until = run.finished_at or clock.now()
    started_at, build = run.started_at or until, run.build
    bars = [Bar("wait", "wait", run.created_at, started_at, is_open=run.status == Run.Status.QUEUED)]
    ended_at = build.finished_at
    # Show a bar for the build only if the run waited for it.
    if build.started_at and build.started_at < started_at and (ended_at is None or ended_at > run.created_at):
        tone = _BUILD_TONES.get(build.status, "off")
        began_at = max(build.started_at, run.created_at)
        bars.append(Bar("build", tone, began_at, min(ended_at or until, until), is_open=ended_at is None))
    waiting = _part("Waiting", bars, run.created_at)
    if run.started_at is None:
        return [waiting]
    steps = events.filter(kind__in=["STEP_STARTED", *_TONES]).order_by("sequence")[: MOST_BARS * 2]
    is_open = run.finished_at is None
    bars = _steps(list(steps), run.started_at, until, is_open=is_open)
    engine = Bar("engine", "busy" if is_open else "off", run.started_at, until)
    return [waiting, _part("Running", bars or [engine], run.started_at, until)]


def _part(title: str, bars: Sequence[Bar], first: datetime, last: datetime | None = None) -> Part:
    seconds = max((max(last or first, *(bar.ended_at for bar in bars)) - first).total_seconds(), 1e-6)
    rows = []
    for bar in bars[:MOST_BARS]:
        x = (bar.began_at - first).total_seconds() / seconds * WIDTH
        width = max(bar.seconds / seconds * WIDTH, NARROWEST)
        rows.append(Row(bar, round(min(x, WIDTH - width), 1), round(width, 1)))
    return Part(title, rows, seconds, len(bars) - len(rows))


def _steps(events: Sequence[Event], began_at: datetime, until: datetime, *, is_open: bool) -> list[Bar]:
    bars: list[Bar] = []
    attempt, open_step = 1, ""
    for event in events:
        step = str((event.data or {}).get("step", ""))
        if event.kind == "STEP_STARTED":
            began_at, attempt, open_step = event.at, 1, step
            continue
        note = f"attempt {attempt}" if attempt > 1 else ""
        bars.append(Bar(step, _TONES[event.kind], began_at, event.at, note))
        began_at, attempt = event.at, attempt + 1
        open_step = step if event.kind == "STEP_RETRIED" else ""
    if open_step:
        bars.append(Bar(open_step, "busy" if is_open else "bad", began_at, until, is_open=is_open))
    return bars
