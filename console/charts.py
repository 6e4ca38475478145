"""Computes charts as shapes in abstract units. Pages draw the shapes as SVG, next to a table with the same numbers.

All text is outside of the SVG, so that it keeps its size when the chart is scaled to the width of a phone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console import formatting
from console.latest import SubmittedRuns
from runs.models import Run
from schedules.ledger import State

WIDTH, HEIGHT = 1000, 200
# The outcomes and their tones, in the order in which a bar stacks them, from bottom to top.
TONES: dict[str, str] = {
    Run.Status.SUCCEEDED: "good",
    Run.Status.CANCELLED: "off",
    "timed_out": "warn",
    Run.Status.FAILED: "bad",
    Run.Status.RUNNING: "busy",
    Run.Status.QUEUED: "wait",
}
# Possible lengths of time for one bar. The chart uses the smallest that needs at most MOST_BARS bars.
STEPS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))
MOST_BARS = 30
# The share of the space for a bar that the bar fills; the rest is the gap to the next bar.
FILLED = 0.8
LOWEST = 1.0
LABELS = 5
assert {*TONES} == {*Run.OUTCOMES}
_WORST_FIRST = {
    **dict.fromkeys((State.FAILED, State.ABANDONED, State.MISSED), "bad"),
    **{State.MISFIRED: "warn", State.RUNNING: "busy", State.WAITING: "wait", State.SUCCEEDED: "good"},
    **dict.fromkeys((State.COALESCED, State.PASSED_OVER), "off"),
    State.EXPECTED: "soon",
}
# For each state, its place in this order and its tone.
WORST_FIRST = {state: (place, tone) for place, (state, tone) in enumerate(_WORST_FIRST.items())}


@dataclass(frozen=True)
class Box:
    tone: str
    x: float
    y: float
    width: float
    height: float

    @property
    def path(self) -> str:
        return f"M{self.x:.1f} {self.y:.1f}h{self.width:.1f}v{self.height:.1f}h-{self.width:.1f}z"


@dataclass(frozen=True)
class Shape:
    """All boxes of one tone as one SVG path."""

    tone: str
    path: str


@dataclass(frozen=True)
class Bar:
    began_at: datetime
    label: str
    counts: Mapping[str, int]
    boxes: Sequence[Box]

    @property
    def cells(self) -> Sequence[int]:
        return [self.counts.get(outcome, 0) for outcome in TONES]


@dataclass(frozen=True)
class Share:
    outcome: str
    tone: str
    count: int


@dataclass(frozen=True)
class Chart:
    bars: Sequence[Bar]
    shapes: Sequence[Shape]
    shares: Sequence[Share]
    highest: int
    # The length of time that a bar stands for, in words.
    step: str
    # A sentence on what the chart shows.
    about: str
    labels: Sequence[str]

    @property
    def outcomes(self) -> Sequence[str]:
        return list(TONES)


def of_runs(submitted: SubmittedRuns) -> Chart:
    """Return a chart of runs, with a bar for each step of submission time, divided by outcome."""
    span = submitted.until - submitted.since
    step = next((step for step in STEPS if span <= (MOST_BARS - 1) * step), STEPS[-1])
    # Bars begin at multiples of the step since midnight UTC, such as full hours or quarters.
    midnight = submitted.since.replace(hour=0, minute=0, second=0, microsecond=0)
    first = submitted.since - (submitted.since - midnight) % step
    starts = [first + n * step for n in range(int((submitted.until - first) / step) + 1)]
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for minute in submitted.minutes:
        # IDs and timestamps of runs submitted at the same moment may be out of order, so a run may fall just before the
        # first bar. Count it in that bar.
        counts[max(0, int((minute.first - first) / step))][minute.outcome] += minute.runs
    highest = max((each.total() for each in counts.values()), default=0)
    bars = [
        Bar(began_at, f"{began_at:%H:%M}", counts[n], _boxes(counts[n], WIDTH / len(starts), n, highest))
        for n, began_at in enumerate(starts)
    ]
    total = sum(counts.values(), Counter[str]())
    length = formatting.length(span.total_seconds())
    about = (
        f"{formatting.number(submitted.number, 'run')} submitted in the last {'24 h' if length == '1 d' else length}."
    )
    if submitted.is_cut:
        about = f"The last {submitted.number:,} runs, submitted within {length}."
    return Chart(
        bars=bars,
        shapes=_shapes(box for bar in bars for box in bar.boxes),
        shares=[Share(outcome, tone, total[outcome]) for outcome, tone in TONES.items() if total[outcome]],
        highest=highest,
        step=formatting.length(step.total_seconds()),
        about=about,
        labels=[bar.label for bar in bars[:: max(1, len(bars) // LABELS)]],
    )


def of_hours(hours: Sequence[Sequence[State]]) -> Sequence[Shape]:
    """Return a box for each hour with slots, in the tone of the worst slot."""
    tones = [min((WORST_FIRST[state] for state in states), default=(0, ""))[1] for states in hours]
    place = WIDTH / max(1, len(tones))
    return _shapes(Box(tone, place * n, 0, place * FILLED, HEIGHT) for n, tone in enumerate(tones) if tone)


def _boxes(counts: "Counter[str]", place: float, n: int, highest: int) -> Sequence[Box]:
    """Return the stacked boxes of bar number `n`. `place` is the width available for each bar."""
    x, width = place * (n + (1 - FILLED) / 2), place * FILLED
    boxes, top = [], float(HEIGHT)
    for outcome, tone in TONES.items():
        if number := counts[outcome]:
            height = max(number / highest * HEIGHT, LOWEST)
            top -= height
            boxes.append(Box(tone, x, top, width, height))
    return boxes


def _shapes(boxes: Iterable[Box]) -> Sequence[Shape]:
    paths: dict[str, list[str]] = {}
    for box in boxes:
        paths.setdefault(box.tone, []).append(box.path)
    return [Shape(tone, "".join(parts)) for tone, parts in paths.items()]
