"""Response schemas for explanations of why work is waiting. See `work/why.py`."""

from datetime import datetime
from typing import Any

from api.frame import Out


class GateOut(Out):
    name: str
    holds: bool
    message: str
    holder: str | None
    since: datetime | None
    data: dict[str, Any]


class ExplanationOut(Out):
    kind: str
    id: int
    status: str
    outcome: str
    message: str
    held_by: list[str]
    gates: list[GateOut]
