"""Compares two runs of one document: how they were configured, how long they took, and what each found."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from console import formatting
from console.snapshots import Difference, difference
from console.timeline import NARROWEST, WIDTH, timeline_of
from runs.lifecycle import RUN_STATES
from runs.models import Run, RunField
from work.models import Event

MOST_FIELDS = 500
LONGEST_VALUE = 2000
# The title of the working part in `console/timeline.py`, and the name of its bar if a run has no steps.
AT_WORK, NO_STEP = "Running", "engine"


@dataclass(frozen=True)
class Setting:
    name: str
    left: str
    right: str

    @property
    def is_same(self) -> bool:
        return self.left == self.right


@dataclass(frozen=True)
class Duration:
    """None means that the run had no such part. Widths are shares of the longest duration, in units of the chart."""

    part: str
    name: str
    left: float | None
    right: float | None
    left_width: float
    right_width: float

    @property
    def change(self) -> str:
        """Return how much longer or shorter the right run took."""
        if self.left is None or self.right is None:
            return ""
        more = self.right - self.left
        return (
            f"{formatting.length(abs(more))} {'longer' if more > 0 else 'less'}" if abs(more) >= 0.001 else "the same"
        )


@dataclass(frozen=True)
class Found:
    value: str
    confidence: float | None
    page: int | None


@dataclass(frozen=True)
class Pair:
    """Two fields of the same name. If a name occurs several times, the first occurrences are compared, then the
    second ones, and so on.
    """

    name: str
    left: Found | None
    right: Found | None

    @property
    def state(self) -> str:
        if self.left is None or self.right is None:
            return "missing"
        return "same" if self.left.value == self.right.value else "different"


@dataclass(frozen=True)
class Fields:
    differing: Sequence[Pair]
    same: Sequence[Pair]
    # Whether a run has more fields than are compared.
    is_cut: bool


@dataclass(frozen=True)
class Comparison:
    settings: Sequence[Setting]
    # Differences of the packages; None if both runs used the same build.
    package: Difference | None
    durations: Sequence[Duration]
    fields: Fields


def compared(left: Run, right: Run) -> Comparison:
    package = None if left.build_id == right.build_id else difference(left.build.snapshot, right.build.snapshot)
    return Comparison(_settings(left, right), package, _durations(left, right), _fields(left, right))


def _settings(left: Run, right: Run) -> list[Setting]:
    told: tuple[tuple[str, Callable[[Run], object]], ...] = (
        ("Configuration", lambda run: run.configuration.name),
        ("Fingerprint", lambda run: run.build.fingerprint[:12]),
        ("Entry point", lambda run: run.build.snapshot.get("entry_point")),
        ("Python", lambda run: run.build.snapshot.get("python_version") or "same as ADE's"),
        ("Files", lambda run: len(run.build.snapshot.get("files") or ())),
        ("Failure", lambda run: run.error_message[:LONGEST_VALUE] or "none"),
    )
    return [Setting(name, str(of(left)), str(of(right))) for name, of in told]


def _durations(left: Run, right: Run) -> list[Duration]:
    """Return the durations. Each part has its own scale, because a run may wait for minutes and then work for
    milliseconds.
    """
    of_left, of_right = _seconds(left), _seconds(right)
    longest: dict[str, float] = defaultdict(float)
    for (part, _), seconds in (*of_left.items(), *of_right.items()):
        longest[part] = max(longest[part], seconds)
    return [
        Duration(*key, of_left.get(key), of_right.get(key), *(_width(key, of, longest) for of in (of_left, of_right)))
        for key in dict.fromkeys((*of_left, *of_right))
    ]


def _seconds(run: Run) -> dict[tuple[str, str], float]:
    """Return the seconds of each step by part. The attempts of a step are added up."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    events = Event.objects.about(RUN_STATES.kind, run.pk)
    for part in timeline_of(run, events):
        if part.title == AT_WORK:
            found[part.title, "total"] = part.seconds
        for row in part.rows:
            found[part.title, row.bar.name] += row.bar.seconds
    # Without steps, the timeline has one bar for the whole part, which is listed already.
    return {key: seconds for key, seconds in found.items() if key[1] != NO_STEP}


def _width(key: tuple[str, str], seconds: dict[tuple[str, str], float], longest: dict[str, float]) -> float:
    return round(max(seconds.get(key, 0.0) / max(longest[key[0]], 1e-6) * WIDTH, NARROWEST), 1)


def _fields(left: Run, right: Run) -> Fields:
    of_left, of_right = ([*run.fields.order_by("position")[: MOST_FIELDS + 1]] for run in (left, right))
    first, second = _by_turn(of_left[:MOST_FIELDS]), _by_turn(of_right[:MOST_FIELDS])
    pairs = [Pair(_label(key), first.get(key), second.get(key)) for key in dict.fromkeys((*first, *second))]
    differing = [pair for pair in pairs if pair.state != "same"]
    is_cut = max(len(of_left), len(of_right)) > MOST_FIELDS
    return Fields(differing, [pair for pair in pairs if pair.state == "same"], is_cut)


def _by_turn(fields: Iterable[RunField]) -> dict[tuple[str, int], Found]:
    found: dict[tuple[str, int], Found] = {}
    turns: dict[str, int] = defaultdict(int)
    for field in fields:
        turns[field.name] += 1
        found[field.name, turns[field.name]] = Found(_as_text(field.value), field.confidence, field.page)
    return found


def _label(key: tuple[str, int]) -> str:
    name, turn = key
    return name if turn == 1 else f"{name} ({turn})"


def _as_text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
