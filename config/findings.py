"""The results of the checks of `manage.py doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    level: Level
    message: str
    advice: str = ""
    offenders: tuple[tuple[str, int], ...] = ()


def ok(message: str) -> Finding:
    return Finding(Level.OK, message)


def warn(message: str, advice: str, offenders: tuple[tuple[str, int], ...] = ()) -> Finding:
    return Finding(Level.WARN, message, advice, offenders)


def fail(message: str, advice: str, offenders: tuple[tuple[str, int], ...] = ()) -> Finding:
    return Finding(Level.FAIL, message, advice, offenders)
