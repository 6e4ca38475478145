"""Parses feeds with `ade_feedreader` in a sandboxed child process, and interprets how the process ended. This uses no
database, and is safe to call from several threads.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import structlog

import ade_feedreader
from ade_feedreader import LONGEST_AUTHOR, LONGEST_SUMMARY, LONGEST_TITLE
from documents.children import program_directory, register
from work.claims import Interrupted
from work.processes.output import storable
from work.processes.supervise import CannotStart, Ended, Limits, Line

FEEDREADER = register("feedreader", ade_feedreader)
# A feed of 5 MB takes two seconds; one that takes longer is probably malicious.
CPU_SECONDS = 10
WALL_SECONDS = 60.0
LIMITS = Limits(
    wall_seconds=WALL_SECONDS,
    cpu_seconds=CPU_SECONDS,
    address_space_bytes=512 << 20,
    file_size_bytes=2 * ade_feedreader.MOST_BYTES,
    open_files=128,
    output_bytes=1 << 16,
    event_bytes=1 << 16,
)
# Most child processes at once: more would compete for the processors, and each stays in memory.
READERS = 2
# How often a thread that waits for a reader checks whether to stop.
LOOK_SECONDS = 0.2
_OUT_OF_MEMORY = ("SIGABRT", "SIGSEGV", "SIGKILL")
_readers = BoundedSemaphore(READERS)

log = structlog.get_logger(__name__)


class ReadFailed(Exception):
    """The feed can't be parsed. The message for people says what was wrong and what to do.

    Codes: not_a_feed, malformed, forbidden, too_large, too_slow, internal.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Item:
    # The URL in the feed, made absolute; "" if the item has none.
    url: str
    title: str
    summary: str
    author: str
    # Seconds since the epoch; None if the feed gives no date.
    published: int | None


@dataclass(frozen=True)
class ParsedFeed:
    format: str
    title: str
    site_url: str
    # For how many seconds the feed asks not to be fetched again; 0 if it doesn't ask.
    ttl_seconds: int
    # Where the syntax is broken; "" if it is valid.
    broken: str
    # Number of items in the feed; only the first of them are taken.
    total: int
    # One line of JSON per item, which takes a third of the memory that parsed objects would take.
    lines: bytes

    @property
    def count(self) -> int:
        return self.lines.count(b"\n")

    def items(self) -> Iterator[Item]:
        """Yield the items. The child may have been compromised by the feed, so its output is validated as untrusted."""
        for line in self.lines.splitlines():
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                message = f"The feed reader wrote an item that is not valid JSON: {error}."
                raise ReadFailed("internal", message) from error
            data = data if isinstance(data, dict) else {}
            yield Item(
                url=_text(data, "url", ade_feedreader.LONGEST_LINK + 1),
                title=_text(data, "title", LONGEST_TITLE),
                summary=_text(data, "summary", LONGEST_SUMMARY),
                author=_text(data, "author", LONGEST_AUTHOR),
                published=published if isinstance(published := data.get("published"), int) else None,
            )


def read(body: bytes, url: str, content_type: str, *, stop: Callable[[], str | None] = lambda: None) -> ParsedFeed:
    """Parse a feed. Raises ReadFailed, or Interrupted if `stop` returned a reason."""
    events: dict[str, dict[str, Any]] = {}

    def keep_event(event: dict[str, Any]) -> None:
        events[str(event.get("kind"))] = event

    def log_lines(lines: list[Line]) -> None:
        for line in lines:
            log.info("feedreader.said", text=line.text)

    with _reader_turn(stop), program_directory(FEEDREADER, stop) as place:
        directory = place.directory
        (directory / ade_feedreader.FEED).write_bytes(body)
        (directory / ade_feedreader.SOURCE).write_text(json.dumps({"url": url, "content_type": content_type}))
        # The child writes only to its own directory, so it may go on after the worker's claim has run out.
        callbacks: dict[str, Any] = {"on_start": lambda child: None, "on_event": keep_event, "on_output": log_lines}
        try:
            ended = place.run([], cwd=directory, limits=LIMITS, stop=stop, **callbacks)
        except CannotStart as error:
            raise ReadFailed("internal", f"The feed reader could not start: {error}") from error
        assert ended is not None
        if ended.stop_reason:
            raise Interrupted(ended.stop_reason)
        if ended.returncode != 0 or "read" not in events:
            raise _failure(ended, events.get("failed"))
        data = events["read"]
        return ParsedFeed(
            format=_text(data, "format", 40),
            title=_text(data, "title", LONGEST_TITLE),
            site_url=_text(data, "site_url", ade_feedreader.LONGEST_LINK + 1),
            ttl_seconds=_number(data, "ttl_seconds"),
            broken=_text(data, "broken", 300),
            total=_number(data, "found"),
            lines=_read_safely(directory / ade_feedreader.ITEMS),
        )


@contextmanager
def _reader_turn(stop: Callable[[], str | None]) -> Iterator[None]:
    while not _readers.acquire(timeout=LOOK_SECONDS):
        if reason := stop():
            raise Interrupted(reason)
    try:
        yield
    finally:
        _readers.release()


def _failure(ended: Ended, failed: dict[str, Any] | None) -> ReadFailed:
    if failed:
        return ReadFailed(_text(failed, "code", 40), _text(failed, "message", 1000))
    if ended.signal == "SIGXCPU" or ended.reason == "timed_out":
        message = f"Reading the feed took over {CPU_SECONDS} s. A usual feed is read in a second."
        return ReadFailed("too_slow", message)
    if ended.over_limit or ended.signal in _OUT_OF_MEMORY:
        return ReadFailed("too_large", f"The feed is too large: the feed reader failed on it ({ended}).")
    return ReadFailed("internal", f"The feed reader failed: {ended}.")


def _read_safely(path: Path) -> bytes:
    """Read a file that the child left. A symbolic link would lead elsewhere and a pipe would block, so both are
    refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ReadFailed("internal", f"The feed reader left no readable {path.name}: {error}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ReadFailed("internal", f"The feed reader left {path.name}, but it is not a file.")
    with open(descriptor, "rb") as file:
        return file.read(LIMITS.file_size_bytes)


def _text(data: dict[str, Any], name: str, most: int) -> str:
    value = data.get(name)
    return storable(value[:most]) if isinstance(value, str) else ""


def _number(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0
