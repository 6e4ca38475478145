"""Defines a finding: a value, its place, its confidence, and the reasons for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from layout import Box, Line

# Even if every check succeeds, a reader may know better.
MOST = 0.99


@dataclass(frozen=True)
class Finding:
    value: Any
    confidence: float
    reasons: tuple[str, ...] = ()
    page: int | None = None
    box: Box | None = field(default=None, repr=False)

    def raised(self, share: float, because: str) -> "Finding":
        """Raise the confidence by a share of what it lacks."""
        return self._with(self.confidence + (MOST - self.confidence) * share, because)

    def lowered(self, share: float, because: str) -> "Finding":
        return self._with(self.confidence * (1 - share), because)

    def _with(self, confidence: float, because: str) -> "Finding":
        return replace(self, confidence=min(MOST, confidence), reasons=(*self.reasons, because))


# The findings by the name under which they are reported.
Findings = dict[str, Finding]


def at(line: Line, start: int, end: int, value: Any, confidence: float, because: str) -> Finding:
    """Return a finding for a part of a line."""
    return Finding(value, confidence, (because,), line.page, line.box_of(start, end))


def best(candidates: list[Finding]) -> Finding | None:
    """Return the candidate with the highest confidence, or the first of equals.

    Another value that comes close lowers it.
    """
    if not candidates:
        return None
    winner = max(candidates, key=lambda each: each.confidence)
    places = {(each.page, each.box) for each in candidates if each.value == winner.value}
    rivals = [each for each in candidates if each.value != winner.value]
    if len(places) > 1:
        winner = winner.raised(0.3, f"found in {len(places)} places")
    rival = max(rivals, key=lambda each: each.confidence, default=None)
    if rival and rival.confidence > 0.8 * winner.confidence:
        winner = winner.lowered(0.2, f"{rival.value} is possible too")
    return winner


def readable(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def change(findings: Findings, name: str, how: Callable[[Finding], Finding]) -> None:
    if name in findings:
        findings[name] = how(findings[name])


def money(findings: Findings, name: str) -> Decimal | None:
    return findings[name].value if name in findings else None
