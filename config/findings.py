"""The result of a check of `manage.py doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    level: Level
    found: str
    advice: str = ""
    offenders: tuple[tuple[str, int], ...] = ()


def ok(found: str) -> Finding:
    return Finding(Level.OK, found)


def warn(found: str, advice: str) -> Finding:
    return Finding(Level.WARN, found, advice)


def fail(found: str, advice: str, offenders: tuple[tuple[str, int], ...] = ()) -> Finding:
    return Finding(Level.FAIL, found, advice, offenders)
