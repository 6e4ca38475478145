"""Goals, measured values, and the table that shows which goals are met."""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    letter: str
    text: str
    measured: str
    # The name of the measurement with which this one is compared in each round; None for an absolute goal.
    against: str | None
    at_least: float | None = None
    at_most: float | None = None


class Samples:
    """The measured values by name, one for each round. Values with the same index belong to the same round."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        self.values[name].append(value)

    def add_moments(self, name: str, moments: list[float]) -> None:
        ordered = sorted(moments)
        self.add(name, ordered[len(ordered) // 2])
        self.add(f"{name}.p99", ordered[math.ceil(len(ordered) * 0.99) - 1])

    def median(self, name: str) -> float | None:
        return statistics.median(self.values[name]) if self.values.get(name) else None

    def ratios(self, goal: Goal) -> list[float]:
        if goal.against is None:
            return self.values.get(goal.measured, [])
        pairs = zip(self.values.get(goal.measured, []), self.values.get(goal.against, []), strict=False)
        return [one / other for one, other in pairs if other]


@dataclass(frozen=True)
class Line:
    goal: Goal
    measured: float
    against: float | None
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        least, most = self.goal.at_least, self.goal.at_most
        wanted = least if least is not None else most
        if wanted is None:
            return ""
        if self.ratio >= wanted if least is not None else self.ratio <= wanted:
            return "ok"
        return f"missed ({self.ratio / wanted - 1:+.0%})" if wanted else "missed"

    @property
    def wanted(self) -> str:
        if self.goal.at_least is not None:
            return f"≥ {self.goal.at_least:g}"
        return f"≤ {self.goal.at_most:g}" if self.goal.at_most is not None else "-"

    def as_json(self) -> dict[str, Any]:
        return {
            "goal": self.goal.letter,
            "text": self.goal.text,
            "measured": self.measured,
            "against": self.against,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "wanted": self.wanted,
            "verdict": self.verdict,
        }


def lines(goals: list[Goal], samples: Samples) -> list[Line]:
    found = []
    for goal in goals:
        ratios = samples.ratios(goal)
        measured = samples.median(goal.measured)
        if ratios and measured is not None:
            against = samples.median(goal.against) if goal.against else None
            found.append(Line(goal, measured, against, statistics.median(ratios), min(ratios), max(ratios)))
    return found


def table(found: list[Line]) -> str:
    head = ("", "what", "measured", "against", "ratio", "(lowest-highest)", "goal", "")
    body = [
        (
            line.goal.letter,
            line.goal.text,
            number(line.measured),
            number(line.against),
            f"{line.ratio:.2f}",
            f"({line.low:.2f}-{line.high:.2f})",
            line.wanted,
            line.verdict,
        )
        for line in found
    ]
    widths = [max(len(row[n]) for row in (head, *body)) for n in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *body)
    )


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
