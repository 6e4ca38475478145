"""Filters for log lines: how often they are written, and without secrets."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

SAY_SECONDS = 60.0


class Seldom:
    """Logs an event at once, and repeats at most once a minute, with the number of occurrences since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at: dict[str, float] = {}
        self._unsaid: Counter[str] = Counter()

    def say(self, event: str, **values: Any) -> None:
        self._unsaid[event] += 1
        now = self._clock()
        if now - self._said_at.get(event, float("-inf")) >= SAY_SECONDS:
            self._said_at[event] = now
            structlog.get_logger(__name__).warning(event, count=self._unsaid.pop(event), **values)


def without_query_string(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Remove query strings from Django's log lines, which contain the request.

    People put tokens into query strings, and download links carry a signature there.
    """
    request = line.get("request")
    if request is not None and not isinstance(request, str):
        line["request"] = f"{getattr(request, 'method', '')} {getattr(request, 'path', '')}".strip()
    return line
