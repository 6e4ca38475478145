"""Gives each candidate its confidence: a logistic model, whose weights are fitted by `tools/fit_recognition.py`."""

import json
from bisect import bisect_right
from collections.abc import Iterable
from math import exp
from pathlib import Path
from typing import Any

from ade_understanding.recognition.candidates import Candidate

_MODEL: dict[str, Any] = json.loads((Path(__file__).parent / "weights.json").read_text("utf-8"))
WEIGHTS: dict[str, float] = _MODEL["weights"]
BIAS: float = _MODEL["bias"]
# The least that the model says of some values, and the share of them that was right, both ascending.
_SAID: list[float] = []
_RIGHT: list[float] = []


def set_calibration(points: list[list[float]]) -> None:
    _SAID[:] = [said for said, _ in points]
    _RIGHT[:] = [right for _, right in points]


set_calibration(_MODEL["calibration"])


def score(features: Iterable[str]) -> float:
    total = BIAS + sum(WEIGHTS.get(feature, 0.0) for feature in features)
    return 1 / (1 + exp(-max(min(total, 30), -30)))


def calibrated(said: float) -> float:
    """Return the share of values with this score that were right, on documents that no weight was fitted on."""
    if not _SAID:
        return said
    return _RIGHT[max(bisect_right(_SAID, said) - 1, 0)]


def rate(candidate: Candidate) -> float:
    return score(candidate.features())
