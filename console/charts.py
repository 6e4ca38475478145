"""Charts as shapes in abstract units. Pages draw them as SVG, next to a table with the same numbers.

All text is outside of the SVG, so it keeps its size when the chart is scaled to the width of a phone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console import formatting
from console.latest import Submitted
from runs.counting import Minute
from runs.models import Run
from schedules.ledger import State

WIDTH, HEIGHT = 1000, 200
# From the bottom to the top of a bar.
TONES = {
    "succeeded": "good",
    "cancelled": "off",
    "timed_out": "warn",
    "failed": "bad",
    "running": "busy",
    "queued": "wait",
}
# The smallest step that needs at most MOST_BARS bars is used.
STEPS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))
MOST_BARS = 30
# Share of the width of a slot that its bar takes.
FILLED = 0.8
LOWEST = 1.0
LABELS = 5
assert {*TONES} == {*Run.OUTCOMES}
_ORDER = (
    *((state, "bad") for state in (State.FAILED, State.ABANDONED, State.MISSED)),
    *((State.MISFIRED, "warn"), (State.RUNNING, "busy"), (State.WAITING, "wait"), (State.SUCCEEDED, "good")),
    *((state, "off") for state in (State.COALESCED, State.PASSED_OVER)),
    (State.EXPECTED, "soon"),
)
WORST_FIRST = {state: (place, tone) for place, (state, tone) in enumerate(_ORDER)}


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
    """All boxes of one tone, merged into one SVG path."""

    tone: str
    path: str


@dataclass(frozen=True)
class Bar:
    began: datetime
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
    # Length of a bar, in words.
    step: str
    # A sentence on what the chart shows.
    about: str
    labels: Sequence[str]

    @property
    def outcomes(self) -> Sequence[str]:
        return list(TONES)


def of_runs(submitted: Submitted) -> Chart:
    """Return the chart of runs by the time of submission and by outcome."""
    step = _step(submitted.until - submitted.since)
    starts = _starts(submitted.since, submitted.until, step)
    counts = _counted(submitted.minutes, starts[0], step)
    highest = max((sum(each.values()) for each in counts.values()), default=0)
    of_all = sum(counts.values(), Counter[str]())
    bars = [_bar(n, began, counts.get(n, Counter()), highest, len(starts)) for n, began in enumerate(starts)]
    return Chart(
        bars=bars,
        shapes=_shapes(box for bar in bars for box in bar.boxes),
        shares=[Share(outcome, tone, of_all[outcome]) for outcome, tone in TONES.items() if of_all[outcome]],
        highest=highest,
        step=formatting.length(step.total_seconds()),
        about=_about(submitted),
        labels=[bar.label for bar in bars[:: max(1, len(bars) // LABELS)]],
    )


def _about(submitted: Submitted) -> str:
    if submitted.is_cut:
        span = formatting.length((submitted.until - submitted.since).total_seconds())
        return f"The last {submitted.number:,} runs, submitted within {span}."
    hours = formatting.length((submitted.until - submitted.since).total_seconds())
    return f"{formatting.number(submitted.number, 'run')} submitted in the last {'24 h' if hours == '1 d' else hours}."


def _step(span: timedelta) -> timedelta:
    return next((step for step in STEPS if span <= (MOST_BARS - 1) * step), STEPS[-1])


def _starts(since: datetime, until: datetime, step: timedelta) -> Sequence[datetime]:
    """Return the starts of the bars, aligned to full hours, quarters and so on in UTC."""
    first = since - (since - since.replace(hour=0, minute=0, second=0, microsecond=0)) % step
    return [first + n * step for n in range(int((until - first) / step) + 1)]


def _counted(minutes: Sequence[Minute], first: datetime, step: timedelta) -> "dict[int, Counter[str]]":
    found: dict[int, Counter[str]] = {}
    for minute in minutes:
        # Within the same moment, IDs and timestamps may be out of order, so clamp to the first bar.
        place = max(0, int((minute.first - first) / step))
        found.setdefault(place, Counter())[minute.outcome] += minute.runs
    return found


def _bar(n: int, began: datetime, counts: "Counter[str]", highest: int, bars: int) -> Bar:
    place = WIDTH / bars
    x, width = place * (n + (1 - FILLED) / 2), place * FILLED
    boxes, top = [], float(HEIGHT)
    for outcome, tone in TONES.items():
        if number := counts[outcome]:
            height = max(number / highest * HEIGHT, LOWEST)
            top -= height
            boxes.append(Box(tone, x, top, width, height))
    return Bar(began, f"{began:%H:%M}", counts, boxes)


def of_hours(hours: Sequence[Sequence[State]]) -> Sequence[Shape]:
    """Return one box per hour in the tone of its worst slot, and none for hours without slots."""
    tones = [min((WORST_FIRST[state] for state in states), default=(0, ""))[1] for states in hours]
    place = WIDTH / max(1, len(tones))
    return _shapes(Box(tone, place * n, 0, place * FILLED, HEIGHT) for n, tone in enumerate(tones) if tone)


def _shapes(boxes: Iterable[Box]) -> Sequence[Shape]:
    paths: dict[str, list[str]] = {}
    for box in boxes:
        paths.setdefault(box.tone, []).append(box.path)
    return [Shape(tone, "".join(of_tone)) for tone, of_tone in paths.items()]
