"""Times, durations and numbers in words."""

from datetime import datetime
from typing import Any

from runs.models import Run
from work import clock
from work.models import Work

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
MOMENTS = 5.0


def plain(word: str) -> str:
    """Return a status or code in plain words."""
    return word.lower().replace("_", " ")


def moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC"


def length(seconds: float) -> str:
    """Format a duration: with fractions if it is below ten seconds, otherwise with at most two units."""
    if seconds < 0:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole, parts = round(seconds), []
    for unit, size in _UNITS:
        number, whole = divmod(whole, size)
        if number:
            parts.append(f"{number} {unit}")
        if len(parts) == 2 or (parts and not number):
            break
    return " ".join(parts)


def ago(value: datetime) -> str:
    seconds = (clock.now() - value).total_seconds()
    if abs(seconds) < MOMENTS:
        return "just now" if seconds >= 0 else "in a moment"
    unit, size = next((unit, size) for unit, size in _UNITS if abs(seconds) >= size)
    number = f"{int(abs(seconds) // size)} {unit}"
    return f"{number} ago" if seconds > 0 else f"in {number}"


def since(value: datetime) -> str:
    return length((clock.now() - value).total_seconds())


def after(result: str, reason: str) -> str:
    """Join a result and its reason, which may be a sentence or the rest of one."""
    return sentence(f"{result}{'. ' if reason[:1].isupper() else ': '}{reason}")


def sentence(text: str) -> str:
    """Add a full stop unless the text ends with punctuation."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def seconds_of(work: Work) -> float:
    """Return the seconds from the start of the work to its end, or until now; 0 if it has not started."""
    return ((work.finished_at or clock.now()) - work.started_at).total_seconds() if work.started_at else 0.0


def of_run(run: Run) -> str:
    """Return the rest of a sentence that begins with the run's status."""
    if run.status == Run.Status.QUEUED:
        return f"waiting for {since(run.created_at)}."
    reason = run.Failure(run.failure_type).label if run.failure_type else ""
    return of_work(run, reason, is_running=run.status == Run.Status.RUNNING)


def of_work(work: Any, reason: str, *, is_running: bool) -> str:
    """Return the rest of a sentence that begins with the status of a run or build. The work must not be queued.
    `reason` says why it failed.
    """
    if is_running:
        cancel = f" Cancel requested by {work.cancel_requested_by}." if work.cancel_requested_at else ""
        return f"for {length(seconds_of(work))}.{cancel}"
    ended = ago(work.finished_at) if work.finished_at else ""
    if work.started_at is None:
        return f"{ended}, before it started."
    return f"{ended}, after {length(seconds_of(work))}{f': {reason}' if reason else ''}."


def number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
