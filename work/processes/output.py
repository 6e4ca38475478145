"""Turns a child's output into lines and JSON events that can be stored. Limits their size, and needs little memory."""

import codecs
import json
import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

# Longer lines are split, because each line becomes a row and is shown on a page.
LINE_CHARACTERS = 8192
# The maximum number of lines per callback, and so per bulk insert. It also limits how many are held in memory.
BATCH_LINES = 500
# The longest that a line waits to be delivered, so that a person who follows the live log sees it soon.
BATCH_SECONDS = 0.1
# How many bytes to keep from the end of output that exceeds the limit, because the last lines explain a failure.
TAIL_BYTES = 4096
# The maximum size of an event. An event is stored as one row, and should be a step's result, not a document.
EVENT_BYTES = 256 * 1024

_line_end = re.compile("\r\n|\n|\r")


class Line(NamedTuple):
    stream: str
    text: str


class Lines:
    """Splits one stream at line ends, including the `\\r` of progress bars, and at LINE_CHARACTERS."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._after_return = False

    def feed(self, data: bytes, *, final: bool = False) -> list[str]:
        text = self._decoder.decode(data, final).replace("\0", "")  # PostgreSQL text cannot contain NUL
        if self._after_return and text.startswith("\n"):
            text = text[1:]
            self._after_return = False
        if text:
            self._after_return = text.endswith("\r")
        *lines, self._pending = _line_end.split(self._pending + text)
        pieces = []
        for line in lines:
            pieces += [line[at : at + LINE_CHARACTERS] for at in range(0, len(line), LINE_CHARACTERS)] or [""]
        while len(self._pending) > LINE_CHARACTERS or (final and self._pending):
            pieces.append(self._pending[:LINE_CHARACTERS])
            self._pending = self._pending[LINE_CHARACTERS:]
        return pieces


class Output:
    """Passes both output streams of one child to `deliver` in batches. Beyond the limit, it counts the bytes and keeps
    only the end of each stream.
    """

    def __init__(self, limit_bytes: int, deliver: Callable[[list[Line]], None] | None) -> None:
        self.seen_bytes = 0
        self.last = deque[str](maxlen=3)
        self._limit_bytes = limit_bytes
        self._deliver = deliver
        self._lines = {"stdout": Lines(), "stderr": Lines()}
        self._tails = {"stdout": b"", "stderr": b""}
        self._left_out_bytes = 0
        self._batch: list[Line] = []
        self._due_at = float("inf")

    @property
    def truncated(self) -> bool:
        return self.seen_bytes > self._limit_bytes

    def feed(self, stream: str, data: bytes) -> None:
        room = max(self._limit_bytes - self.seen_bytes, 0)
        was_truncated = self.truncated
        self.seen_bytes += len(data)
        if room:
            self._add(stream, self._lines[stream].feed(data[:room]))
        if len(data) > room:
            self._left_out_bytes += len(data) - room
            self._tails[stream] = (self._tails[stream] + data[room:][-TAIL_BYTES:])[-TAIL_BYTES:]
            if not was_truncated:
                self._end_lines()
                self._add(stream, [f"[more than {self._limit_bytes:,} bytes of output: only the end is kept]"])

    def _end_lines(self) -> None:
        for stream, lines in self._lines.items():
            self._add(stream, lines.feed(b"", final=True))

    def _add(self, stream: str, texts: list[str]) -> None:
        if not texts:
            return
        self.last.extend(texts)
        if not self._batch:
            self._due_at = time.monotonic() + BATCH_SECONDS
        self._batch += [Line(stream, text) for text in texts]
        while len(self._batch) >= BATCH_LINES:
            self._deliver_batch(BATCH_LINES)

    def seconds_until_due(self) -> float:
        return self._due_at - time.monotonic()

    def flush(self) -> None:
        while self._batch:
            self._deliver_batch(BATCH_LINES)

    def _deliver_batch(self, count: int) -> None:
        batch, self._batch = self._batch[:count], self._batch[count:]
        if not self._batch:
            self._due_at = float("inf")
        if self._deliver is not None:
            self._deliver(batch)

    def end(self) -> None:
        self._end_lines()
        if self.truncated:
            shown = sum(len(tail) for tail in self._tails.values())
            self._add("stderr", [f"[{self._left_out_bytes - shown:,} bytes omitted]"])
            for stream, tail in self._tails.items():
                self._add(stream, Lines().feed(tail, final=True))
        self.flush()


class Events:
    """Parses one JSON object per line. Drops and counts all other lines, too long lines, and lines over the limit."""

    def __init__(self, limit_bytes: int, deliver: Callable[[dict[str, Any]], None]) -> None:
        self.refused = 0
        self._room = limit_bytes
        self._deliver = deliver
        self._pending = b""
        self._skipping = False

    def feed(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, self._pending = self._pending + line, b""
            if self._skipping:
                self._skipping = False
            else:
                self._take(whole)
        if not self._skipping:
            self._pending += rest
            if len(self._pending) > EVENT_BYTES:
                self.refused += 1
                self._pending, self._skipping = b"", True

    def end(self) -> None:
        if self._pending:
            self._take(self._pending)
            self._pending = b""

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        self._room -= len(line)
        try:
            event = storable(json.loads(line)) if self._room >= 0 and len(line) <= EVENT_BYTES else None
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            self._deliver(event)
        else:
            self.refused += 1


def storable(value: Any) -> Any:
    """Make a value storable: drop NUL and replace lone surrogates, which jsonb refuses. Raise ValueError for infinity
    and NaN.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number in JSON")
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, list):
        return [storable(each) for each in value]
    if isinstance(value, dict):
        return {storable(name): storable(each) for name, each in value.items()}
    return value
