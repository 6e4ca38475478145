"""The timeline of a run as bars: its wait, its build, its steps and their attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builds.models import Build
from runs.models import Run
from work import clock
from work.models import Event

# Units of the chart.
WIDTH = 1000
NARROWEST = 3
MOST_BARS = 60
_ENDS = {"STEP_SUCCEEDED": "good", "STEP_FAILED": "bad", "STEP_RETRIED": "warn"}


@dataclass(frozen=True)
class Bar:
    name: str
    tone: str
    began: datetime
    ended: datetime
    # Shown next to the duration.
    said: str = ""
    is_open: bool = False

    @property
    def seconds(self) -> float:
        return (self.ended - self.began).total_seconds()


@dataclass(frozen=True)
class Placed:
    bar: Bar
    x: float
    width: float


@dataclass(frozen=True)
class Part:
    """Bars on one scale. Each part has its own, because a run may wait for minutes and then work for milliseconds."""

    title: str
    rows: Sequence[Placed]
    seconds: float
    # Number of further bars.
    left_out: int


def timeline_of(run: Run, events: Any) -> Sequence[Part]:
    until = run.finished_at or clock.now()
    before = _part("Waiting", [_wait(run, until), *_build(run, until)], run.created_at)
    if run.started_at is None:
        return [before]
    steps = events.filter(kind__in=["STEP_STARTED", *_ENDS]).order_by("sequence")[: MOST_BARS * 2]
    return [before, _part("Running", _steps(list(steps), run, until), run.started_at, until)]


def _part(title: str, bars: Sequence[Bar], first: datetime, last: datetime | None = None) -> Part:
    seconds = max((max(last or first, *(bar.ended for bar in bars)) - first).total_seconds(), 1e-6)
    placed = [_placed(bar, first, seconds) for bar in bars[:MOST_BARS]]
    return Part(title, placed, seconds, len(bars) - len(placed))


def _wait(run: Run, until: datetime) -> Bar:
    return Bar("wait", "wait", run.created_at, run.started_at or until, is_open=run.status == "queued")


def _build(run: Run, until: datetime) -> list[Bar]:
    """Return the bar of the build, only if the run waited for it."""
    build: Build = run.build
    began, ended = build.started_at, build.finished_at
    if began is None or (ended and ended <= run.created_at) or began >= (run.started_at or until):
        return []
    tone = {"ready": "good", "failed": "bad", "building": "busy"}.get(build.status, "off")
    return [Bar("build", tone, max(began, run.created_at), min(ended or until, until), is_open=ended is None)]


def _steps(events: Sequence[Event], run: Run, until: datetime) -> list[Bar]:
    if run.started_at is None:
        return []
    bars: list[Bar] = []
    began, attempt = run.started_at, 1
    open_step = ""
    for event in events:
        step = str((event.data or {}).get("step", ""))
        if event.kind == "STEP_STARTED":
            began, attempt, open_step = event.at, 1, step
            continue
        bars.append(Bar(step, _ENDS[event.kind], began, event.at, f"attempt {attempt}" if attempt > 1 else ""))
        began, attempt = event.at, attempt + 1
        open_step = step if event.kind == "STEP_RETRIED" else ""
    if open_step:
        tone = "busy" if run.finished_at is None else "bad"
        bars.append(Bar(open_step, tone, began, until, is_open=run.finished_at is None))
    return bars or [Bar("engine", "busy" if run.finished_at is None else "off", run.started_at, until)]


def _placed(bar: Bar, first: datetime, whole: float) -> Placed:
    x = (bar.began - first).total_seconds() / whole * WIDTH
    width = max(bar.seconds / whole * WIDTH, NARROWEST)
    return Placed(bar, round(min(x, WIDTH - width), 1), round(width, 1))
