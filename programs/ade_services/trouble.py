"""Holds the errors of services and what both clients share to detect and describe them."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any

# A message is stored in a row and shown to people.
LONGEST_MESSAGE = 1000
# Limit for the part of a message that quotes the service.
LONGEST_DETAIL = 300
# Upper limit for a Retry-After of a service; callers apply their own, shorter limits.
LONGEST_PAUSE_SECONDS = 30 * 24 * 3600.0


class Trouble(Exception):
    """The service gave no usable answer.

    With `permanent`, a retry with the same settings and the same document would fail in the same way. With `away`,
    every other request would fail at the moment too.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        away: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.retry_after = retry_after
        self.away = away

    def to_json(self) -> dict[str, Any]:
        message = clean(str(self))[:LONGEST_MESSAGE]
        more = {"permanent": self.permanent, "retry_after": self.retry_after, "away": self.away}
        return {"code": self.code, "message": message, **more}


class TooLarge(Exception):
    """The answer is larger than its limit, and what has arrived is discarded."""


def away(code: str, message: str, *, retry_after: float | None = None) -> Trouble:
    """Return a Trouble that affects all requests: the service does not answer, or asks to be called later."""
    return Trouble(code, message, retry_after=retry_after, away=True)


def wrong(service: str, problem: str) -> Trouble:
    """Return a Trouble for an undocumented answer. It is not permanent, because a proxy may have sent it."""
    return Trouble("wrong_answer", f"{service} sent an invalid answer: {problem}.")


def wrong_because(service: str, error: BaseException) -> Trouble:
    return wrong(service, f"it cannot be read ({detail(type(error).__name__, error)})")


def detail(*parts: object) -> str:
    return ": ".join(text for part in parts if (text := clean(str(part or "")).strip()))[:LONGEST_DETAIL]


def reason(error: BaseException) -> str:
    """Return the operating system's message if one is among the causes, otherwise the type of the error."""
    seen: set[int] = set()
    inner: BaseException | None = error
    while inner is not None and id(inner) not in seen:
        if isinstance(inner, OSError) and inner.strerror:
            return detail(inner.strerror)
        seen.add(id(inner))
        inner = getattr(inner, "inner_exception", None) or inner.__cause__ or inner.__context__
    return detail(type(error).__name__)


def clean(text: str) -> str:
    """Replace lone surrogates and drop NUL, because no database stores them."""
    return text.encode(errors="replace").decode().replace("\0", "")


def pause(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds the service asks not to be called again, or None if it does not say."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return _within(milliseconds / 1000)
    retry_after = headers.get("retry-after")
    if (seconds := _number(retry_after)) is not None:
        return _within(seconds)
    until = _moment(retry_after)
    # Compare with the clock of the service if it sent its date, because the local clock may differ.
    return None if until is None else _within(until - (_moment(headers.get("date")) or time.time()))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _moment(text: str | None) -> float | None:
    parsed = parsedate_tz(text) if text else None
    try:
        return float(mktime_tz(parsed)) if parsed else None
    except (ValueError, OverflowError):
        return None


def _within(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)


def up_to(most: int, read: Callable[..., Iterable[bytes]]) -> Callable[..., Iterator[bytes]]:
    """Wrap a function that yields pieces of an answer, so that it raises TooLarge after `most` bytes."""

    def pieces(*arguments: Any, **options: Any) -> Iterator[bytes]:
        seen = 0
        for piece in read(*arguments, **options):
            seen += len(piece)
            if seen > most:
                raise TooLarge(f"it has more than {most:,} bytes")
            yield piece

    return pieces
