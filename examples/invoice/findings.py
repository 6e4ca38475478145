"""What was found: a value, where it stands, how sure it is, and why."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from layout import Box, Line

# Even with every check held, a reader may know better.
MOST = 0.99


@dataclass(frozen=True)
class Finding:
    value: Any
    confidence: float
    reasons: tuple[str, ...] = ()
    page: int | None = None
    box: Box | None = field(default=None, repr=False)

    def raised(self, share: float, because: str) -> "Finding":
        """Surer by this share of what was missing."""
        return self._with(self.confidence + (MOST - self.confidence) * share, because)

    def lowered(self, share: float, because: str) -> "Finding":
        return self._with(self.confidence * (1 - share), because)

    def _with(self, confidence: float, because: str) -> "Finding":
        return replace(self, confidence=min(MOST, confidence), reasons=(*self.reasons, because))


# Under the names that they are reported by.
Findings = dict[str, Finding]


def at(line: Line, start: int, end: int, value: Any, confidence: float, because: str) -> Finding:
    """Something that this part of the line says."""
    return Finding(value, confidence, (because,), line.page, line.box_of(start, end))


def best(candidates: list[Finding]) -> Finding | None:
    """The surest; of several that are equally sure the first. Less sure when another value comes close."""
    if not candidates:
        return None
    winner = max(candidates, key=lambda each: each.confidence)
    places = {(each.page, each.box) for each in candidates if each.value == winner.value}
    rivals = [each for each in candidates if each.value != winner.value]
    if len(places) > 1:
        winner = winner.raised(0.3, f"found at {len(places)} places")
    rival = max(rivals, key=lambda each: each.confidence, default=None)
    if rival and rival.confidence > 0.8 * winner.confidence:
        winner = winner.lowered(0.2, f"{rival.value} would be possible too")
    return winner


def readable(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def change(findings: Findings, name: str, how: Callable[[Finding], Finding]) -> None:
    if name in findings:
        findings[name] = how(findings[name])


def money(findings: Findings, name: str) -> Decimal | None:
    return findings[name].value if name in findings else None
