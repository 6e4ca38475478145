"""Compares two runs of one document: their packages, durations and fields."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from console import formatting
from console.snapshots import Difference, difference
from console.timeline import NARROWEST, WIDTH, timeline_of
from runs.lifecycle import RUN_STATES
from runs.models import Run, RunField
from work.models import Event

MOST_FIELDS = 500
LONGEST_VALUE = 2000
# Names from `console/timeline.py`: the title of the part in which the engine works, and the name of its only bar if a
# run has no steps.
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
    """The duration of the same step in both runs; None if a run had no such step. Widths are in units of the chart,
    relative to the longest duration of the part.
    """

    part: str
    name: str
    left: float | None
    right: float | None
    left_width: float
    right_width: float

    @property
    def change(self) -> str:
        """Return in words how much longer or shorter the right run took."""
        if self.left is None or self.right is None:
            return ""
        more = self.right - self.left
        if abs(more) < 0.001:
            return "the same"
        return f"{formatting.length(abs(more))} {'longer' if more > 0 else 'less'}"


@dataclass(frozen=True)
class FieldValue:
    text: str
    confidence: float | None
    page: int | None


@dataclass(frozen=True)
class Pair:
    """Two fields with the same name, one from each run. If a name occurs several times, its first occurrences form a
    pair, its second occurrences the next pair, and so on.
    """

    name: str
    left: FieldValue | None
    right: FieldValue | None

    @property
    def state(self) -> str:
        if self.left is None or self.right is None:
            return "missing"
        return "same" if self.left.text == self.right.text else "different"


@dataclass(frozen=True)
class Fields:
    differing: Sequence[Pair]
    same: Sequence[Pair]
    # Whether one of the runs has more fields than were compared.
    is_cut: bool


@dataclass(frozen=True)
class Comparison:
    settings: Sequence[Setting]
    # The differences between the packages; None if both runs used the same build.
    package: Difference | None
    durations: Sequence[Duration]
    fields: Fields


def compare(left: Run, right: Run) -> Comparison:
    settings: tuple[tuple[str, Callable[[Run], object]], ...] = (
        ("Configuration", lambda run: run.configuration.name),
        ("Fingerprint", lambda run: run.build.fingerprint[:12]),
        ("Entry point", lambda run: run.build.snapshot.get("entry_point")),
        ("Python", lambda run: run.build.snapshot.get("python_version") or "same as ADE's"),
        ("Files", lambda run: len(run.build.snapshot.get("files") or ())),
        ("Failure", lambda run: run.error_message[:LONGEST_VALUE] or "none"),
    )
    return Comparison(
        settings=[Setting(name, str(of(left)), str(of(right))) for name, of in settings],
        package=None if left.build_id == right.build_id else difference(left.build.snapshot, right.build.snapshot),
        durations=_durations(left, right),
        fields=_fields(left, right),
    )


def _durations(left: Run, right: Run) -> list[Duration]:
    """Return the durations of all steps. Each part has its own scale, because a run may wait for minutes and then work
    for milliseconds.
    """
    sides = _seconds(left), _seconds(right)
    longest: dict[str, float] = defaultdict(float)
    for (part, _), seconds in (*sides[0].items(), *sides[1].items()):
        longest[part] = max(longest[part], seconds)
    durations = []
    for key in dict.fromkeys((*sides[0], *sides[1])):
        whole = max(longest[key[0]], 1e-6)
        widths = [round(max(side.get(key, 0.0) / whole * WIDTH, NARROWEST), 1) for side in sides]
        durations.append(Duration(*key, sides[0].get(key), sides[1].get(key), *widths))
    return durations


def _seconds(run: Run) -> dict[tuple[str, str], float]:
    """Return the seconds by part and step. The attempts of a step are added up."""
    totals: dict[tuple[str, str], float] = defaultdict(float)
    events = Event.objects.about(RUN_STATES.kind, run.pk)
    for part in timeline_of(run, events):
        if part.title == AT_WORK:
            totals[part.title, "total"] = part.seconds
        for row in part.rows:
            totals[part.title, row.bar.name] += row.bar.seconds
    # Leave out the bar that the timeline has if there are no steps: it stands for the whole part, which is already
    # listed.
    return {key: seconds for key, seconds in totals.items() if key[1] != NO_STEP}


def _fields(left: Run, right: Run) -> Fields:
    of_left, of_right = ([*run.fields.order_by("position")[: MOST_FIELDS + 1]] for run in (left, right))
    first, second = _by_turn(of_left[:MOST_FIELDS]), _by_turn(of_right[:MOST_FIELDS])
    pairs = [
        Pair(name if turn == 1 else f"{name} ({turn})", first.get((name, turn)), second.get((name, turn)))
        for name, turn in dict.fromkeys((*first, *second))
    ]
    differing = [pair for pair in pairs if pair.state != "same"]
    is_cut = max(len(of_left), len(of_right)) > MOST_FIELDS
    return Fields(differing, [pair for pair in pairs if pair.state == "same"], is_cut)


def _by_turn(fields: Iterable[RunField]) -> dict[tuple[str, int], FieldValue]:
    values: dict[tuple[str, int], FieldValue] = {}
    turns: Counter[str] = Counter()
    for field in fields:
        text = field.value
        if text is None:
            text = "none"
        elif not isinstance(text, str):
            text = json.dumps(text, ensure_ascii=False, sort_keys=True)
        turns[field.name] += 1
        values[field.name, turns[field.name]] = FieldValue(text, field.confidence, field.page)
    return values
