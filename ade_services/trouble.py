"""Why a service gives no answer, or none that can be used."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any

# A message is a row, and is read by people.
LONGEST_MESSAGE = 1000
# What a service says of its reasons.
LONGEST_DETAIL = 300
# Asked for a longer pause, nobody waits; who waits has a limit of his own.
LONGEST_PAUSE_SECONDS = 30 * 24 * 3600.0


class Trouble(Exception):
    """Permanent: the same settings, or the same document, end the same way."""

    def __init__(self, code: str, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.retry_after = retry_after

    def told(self) -> dict[str, Any]:
        message = clean(str(self))[:LONGEST_MESSAGE]
        return {"code": self.code, "message": message, "permanent": self.permanent, "retry_after": self.retry_after}


class TooMuch(Exception):
    """An answer that goes on and on; what has come of it is let go."""


def wrong(service: str, found: str) -> Trouble:
    """It answers, and not as it has promised. That may be a proxy on the way, and pass."""
    return Trouble("wrong_answer", f"expected an answer of {service} as it is documented, found {found}")


def wrong_because(service: str, error: BaseException) -> Trouble:
    return wrong(service, f"one that cannot be read ({detail(type(error).__name__, error)})")


def detail(*parts: object) -> str:
    return ": ".join(text for part in parts if (text := clean(str(part or "")).strip()))[:LONGEST_DETAIL]


def reason(error: BaseException) -> str:
    """What the machine said, below what the layers of a client have made of it."""
    seen: set[int] = set()
    inner: BaseException | None = error
    while inner is not None and id(inner) not in seen:
        if isinstance(inner, OSError) and inner.strerror:
            return detail(inner.strerror)
        seen.add(id(inner))
        inner = getattr(inner, "inner_exception", None) or inner.__cause__ or inner.__context__
    return detail(type(error).__name__)


def clean(text: str) -> str:
    """Without what no database takes: NUL, and halves of surrogate pairs."""
    return text.encode(errors="replace").decode().replace("\0", "")


def pause(headers: Mapping[str, str]) -> float | None:
    """For how many seconds the service does not want to be asked again; None when it has not said so."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return _within(milliseconds / 1000)
    said = headers.get("retry-after")
    if (seconds := _number(said)) is not None:
        return _within(seconds)
    until = _moment(said)
    # By the clock of the service, if it shows it: ours may be another.
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
    """The same pieces of an answer, until there are too many."""

    def pieces(*arguments: Any, **options: Any) -> Iterator[bytes]:
        seen = 0
        for piece in read(*arguments, **options):
            seen += len(piece)
            if seen > most:
                raise TooMuch(f"expected an answer of at most {most:,} bytes, found a longer one")
            yield piece

    return pieces
