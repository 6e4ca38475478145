"""Turns the messages of one engine into events and results, and its end into an outcome."""

import errno
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ade_engine.context import LOG_CUT, LONGEST_LINE, MOST_LOG
from runs.models import Run
from work.changes import INFO
from work.claims import Interrupted
from work.journal import LOG
from work.processes.supervise import Ended

# The most fields that a run may report. Each becomes a row, so more than this must be a mistake.
MOST_FIELDS = 10_000
# The pause between two progress events. Each event is a row, and only people who watch the run read it.
PROGRESS_SECONDS = 1.0
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_LIMIT_SIGNALS = {
    "SIGXCPU": "CPU time",
    "SIGXFSZ": "file size",
    "SIGSYS": "system calls: it tried to mount a file system or to create a namespace",
}
# Python's message for exceeding the file size limit.
_FILE_TOO_LARGE = f"[Errno {errno.EFBIG}]"
LONGEST_MESSAGE = 2000

Failure = Run.Failure


class Listener(Protocol):
    """Receives the events of an execution. It is a journal, or a check's report, which is not stored."""

    def tell(self, kind: str, message: str = "", data: Mapping[str, Any] | None = None, level: int = INFO) -> None: ...

    def look(self) -> None: ...


class EngineFailed(Exception):
    def __init__(self, failure_type: str, message: str) -> None:
        super().__init__(message[:LONGEST_MESSAGE])
        self.failure_type = failure_type


@dataclass
class Results:
    fields: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    # The data of the event RUN_SUCCEEDED.
    data: dict[str, Any] = field(default_factory=dict)


class EngineSession:
    def __init__(self, journal: Listener) -> None:
        self.fields: list[dict[str, Any]] = []
        self.step = ""
        self._journal = journal
        self._result: dict[str, Any] | None = None
        self._progress_at = 0.0
        self._unreadable = 0
        self._log_room, self._log_cut = MOST_LOG, False

    def hear(self, event: dict[str, Any]) -> None:
        handle = getattr(self, f"_on_{event.get('kind')}", None)
        if handle is None:
            self._unreadable += 1
            return
        try:
            handle(event)
        except (KeyError, TypeError, ValueError):
            self._unreadable += 1
        # Many events may arrive at once, and the journal can hold only a limited number of unwritten events.
        self._journal.look()

    def judge(self, end: Ended, limit_seconds: float) -> list[dict[str, Any]]:
        """Return the fields if the engine succeeded. Otherwise raise Interrupted or EngineFailed."""
        if end.stop_reason:
            raise Interrupted(end.stop_reason)
        if end.over_limit:
            message = f"The engine exceeded its limit of {end.over_limit}{self._where()}."
            raise EngineFailed(Failure.LIMIT_EXCEEDED, message)
        if end.reason == "timed_out":
            raise EngineFailed(Failure.TIMED_OUT, f"Timed out after {limit_seconds:g} s{self._where()}.")
        if end.reason == "lost":
            raise EngineFailed(Failure.PROCESS_TERMINATED, f"The engine was {end}{self._where()}.")
        if self._result is not None and self._result["outcome"] != "succeeded":
            raise _failure_of(self._result)
        if end.signal in _LIMIT_SIGNALS:
            limit = _LIMIT_SIGNALS[end.signal]
            raise EngineFailed(Failure.LIMIT_EXCEEDED, f"The engine exceeded its limit of {limit}{self._where()}.")
        # Check this before the result, which may be among the refused events.
        if not end.signal and (refused := end.events_refused + self._unreadable):
            raise EngineFailed(
                Failure.LIMIT_EXCEEDED,
                f"{refused} results of the engine were unreadable, too many or too large.",
            )
        if self._result is None or end.returncode != 0:
            silence = "" if self._result else ", without reporting a result"
            raise EngineFailed(Failure.ENGINE_FAILED, f"The engine {end}{self._where()}{silence}.")
        return self.fields

    def _where(self) -> str:
        return f" in step {self.step}" if self.step else ""

    def _on_step_started(self, event: dict[str, Any]) -> None:
        self.step = str(event["step"])[:100]
        if event["attempt"] == 1:
            self._journal.tell("STEP_STARTED", self.step, {"step": self.step, "attempt": 1})

    def _on_step_succeeded(self, event: dict[str, Any]) -> None:
        self._journal.tell("STEP_SUCCEEDED", self.step, _data_of_attempt(event))
        self.step = ""

    def _on_step_retried(self, event: dict[str, Any]) -> None:
        self._journal.tell("STEP_RETRIED", _message_of(event), _data_of_attempt(event), LEVELS["warning"])

    def _on_step_failed(self, event: dict[str, Any]) -> None:
        self._journal.tell("STEP_FAILED", _message_of(event), _data_of_attempt(event), LEVELS["error"])

    def _on_log(self, event: dict[str, Any]) -> None:
        message, level = str(event["message"])[:LONGEST_LINE], LEVELS[event["level"]]
        data = {"stream": "log", "step": str(event["step"])[:100]}
        self._log_room -= len(message)
        if self._log_room >= 0:
            self._journal.tell(LOG, message, data, level)
        elif not self._log_cut:
            self._log_cut = True
            self._journal.tell(LOG, LOG_CUT, data, LEVELS["warning"])

    def _on_progress(self, event: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._progress_at >= PROGRESS_SECONDS or event["done"] == event["total"]:
            self._progress_at = now
            data = {name: event[name] for name in ("step", "done", "total")}
            self._journal.tell("PROGRESS", f"{event['done']} of {event['total']}", data)

    def _on_field(self, event: dict[str, Any]) -> None:
        if len(self.fields) >= MOST_FIELDS:
            raise ValueError
        confidence, page, box = event["confidence"], event["page"], event["box"]
        if confidence is not None and not 0 <= confidence <= 1:
            raise ValueError
        if page is not None and not 0 < int(page) < 2**31:
            raise ValueError
        self.fields.append(
            {
                "position": len(self.fields) + 1,
                "name": str(event["name"])[:100],
                "value": event["value"],
                "confidence": confidence,
                "page": page,
                "box": [float(each) for each in box] if box is not None else None,
                "step": str(event["step"])[:100],
            }
        )

    def _on_result(self, event: dict[str, Any]) -> None:
        if event["outcome"] not in ("succeeded", "failed", "rejected"):
            raise ValueError
        self._result = event


def _failure_of(result: dict[str, Any]) -> EngineFailed:
    kind, error, step = (str(result.get(name) or "").strip() for name in ("type", "error", "step"))
    reason = ": ".join(filter(None, [kind, error])) or "it reported no reason"
    if result["outcome"] == "rejected":
        return EngineFailed(Failure.REJECTED, error or reason)
    if kind == "MemoryError":
        return EngineFailed(Failure.LIMIT_EXCEEDED, f"step {step}: exceeded its memory limit: {error}")
    if kind == "OSError" and _FILE_TOO_LARGE in error:
        limit = _LIMIT_SIGNALS["SIGXFSZ"]
        return EngineFailed(Failure.LIMIT_EXCEEDED, f"step {step}: exceeded its limit of {limit}: {error}")
    if not step:
        return EngineFailed(Failure.ENGINE_FAILED, reason)
    return EngineFailed(Failure.STEP_FAILED, f"step {step[:100]}: {reason}")


def _data_of_attempt(event: dict[str, Any]) -> dict[str, Any]:
    names = ("step", "attempt", "seconds", "type", "error")
    return {name: event[name] for name in names if name in event}


def _message_of(event: dict[str, Any]) -> str:
    return f"{event['step']}: {event['type']}: {event['error']}"
