"""Runs the extractor on a file in a limited child process and interprets how it ended. Does not use the database."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any

import ade_extractor
from documents.children import COLD_EXTRACTOR, Run
from documents.extraction.outcome import Extraction, ExtractionFailed
from work.claims import Interrupted
from work.processes.supervise import Child, Ended, Limits

# The CPU limit follows the time limit of each call; the extractor itself allows each document less CPU time. The limit
# for events allows one event per page.
LIMITS = Limits(address_space_bytes=2 << 30, file_size_bytes=256 << 20, open_files=128, event_bytes=4 << 20)
# Signals that end a parser when it crashes, and when it runs out of memory. In that case, pdfium and Rust abort with
# SIGTRAP or SIGILL.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE")
_OUT_OF_MEMORY = ("SIGABRT", "SIGTRAP", "SIGILL")
# A bit more than a picture whose pixels cannot be compressed.
MOST_DRAWN_BYTES = 8 << 20
# Enough for cells and text in which every character takes six bytes.
MOST_PEEKED_BYTES = 6 << 20
MOST_ROWS, MOST_COLUMNS = ade_extractor.PEEKED_ROWS, ade_extractor.PEEKED_COLUMNS
_PNG = b"\x89PNG\r\n\x1a\n"
# A share of the time limit. A timed-out child that used less CPU time was slowed down by other processes.
BUSY_SHARE = 0.5


def extract(
    file: Path,
    content_type: str,
    first: int,
    last: int,
    directory: Path,
    *,
    wall_seconds: float,
    stop: Callable[[], str | None] = lambda: None,
    on_start: Callable[[Child], None] = lambda child: None,
    run: Run = COLD_EXTRACTOR,
    with_ocr: bool = True,
) -> Extraction:
    """Write the pages from `first` to `last` to `pages.json` in the directory. Unfinished files may also remain there.

    The input file must be in the same directory, unless `run` starts the program cold.

    Raises ExtractionFailed and CannotStart, and Interrupted if `stop` returns a reason.
    """
    path = directory / ade_extractor.OUTPUT
    path.unlink(missing_ok=True)
    options = {"--type": content_type, "--first": first, "--last": last, "--output": directory.absolute()}
    arguments = ["extract", str(file.absolute()), *(str(each) for option in options.items() for each in option)]
    arguments += [] if with_ocr else ["--without-ocr"]
    values = _run(arguments, directory, wall_seconds, stop, on_start, run, [file])["extracted"]
    counts = {name: int(values[name]) for name in ("pages_total", "pages", "characters")}
    return Extraction(**counts, path=path, sha256=checksum(path), scans=int(values.get("scans", 0)))


def digest(
    file: Path,
    content_type: str,
    segments: Sequence[Path],
    directory: Path,
    *,
    wall_seconds: float,
    stop: Callable[[], str | None] = lambda: None,
    on_start: Callable[[Child], None] = lambda child: None,
    run: Run = COLD_EXTRACTOR,
) -> Any:
    """Return the result of `ade_extractor.digest` for the outputs of `extract` in the directory.

    Raises the same exceptions as `extract`.
    """
    arguments = ["digest", str(file.absolute()), "--type", content_type, *(path.name for path in segments)]
    events = _run(arguments, directory, wall_seconds, stop, on_start, run, [file])
    assert "digested" in events
    with open_output(directory / ade_extractor.DIGEST) as output:
        return json.load(output)


def can_draw(content_type: str) -> bool:
    return content_type in ade_extractor.DRAWN


def draw(file: Path, content_type: str, page: int, directory: Path, *, wall_seconds: float, run: Run) -> bytes:
    """Return one page as a PNG of screen size. Raises the same exceptions as `extract`."""
    arguments = ["draw", str(file.absolute()), "--type", content_type, "--page", str(page)]
    _run(arguments, directory, wall_seconds, lambda: None, lambda child: None, run, [file])
    with open_output(directory / ade_extractor.PREVIEW) as output:
        picture = output.read(MOST_DRAWN_BYTES + 1)
    if not picture.startswith(_PNG) or len(picture) > MOST_DRAWN_BYTES:
        raise ExtractionFailed("internal", "The extractor did not draw a PNG of a valid size.", permanent=False)
    return picture


def peek(file: Path, content_type: str, page: int, directory: Path, *, wall_seconds: float, run: Run) -> bytes:
    """Return the beginning of one page as JSON.

    The caller must check the JSON, because the child may have been compromised.

    Raises the same exceptions as `extract`.
    """
    arguments = ["peek", str(file.absolute()), "--type", content_type, "--page", str(page)]
    _run(arguments, directory, wall_seconds, lambda: None, lambda child: None, run, [file])
    with open_output(directory / ade_extractor.PEEK) as output:
        excerpt = output.read(MOST_PEEKED_BYTES + 1)
    if len(excerpt) > MOST_PEEKED_BYTES:
        raise ExtractionFailed("internal", "The excerpt that the extractor wrote is too large.", permanent=False)
    return excerpt


def ocr_engine() -> str | None:
    """Return the name of the OCR engine on this machine, or None."""
    return ade_extractor.ocr_engine()


def checksum(path: Path) -> str:
    with open_output(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_output(path: Path) -> BufferedReader:
    """Open a file that a child has written. Refuse links and pipes, because the child may have been compromised."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _no_output(path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_output(path)
    return open(descriptor, "rb")


def _run(
    arguments: Sequence[str],
    directory: Path,
    wall_seconds: float,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run,
    readable: Sequence[Path],
) -> dict[str, dict[str, Any]]:
    """Run the extractor and return the last event of each kind."""
    events: dict[str, dict[str, Any]] = {}
    ended = run(
        arguments,
        cwd=directory,
        limits=replace(LIMITS, wall_seconds=wall_seconds, cpu_seconds=max(1, math.ceil(wall_seconds))),
        stop=stop,
        on_start=on_start,
        on_event=lambda event: events.update({str(event.get("kind")): event}),
        # Drop the output: the extractor itself prints nothing, only its libraries do.
        on_output=lambda lines: None,
        readable=readable,
    )
    if ended is None:
        return events
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    if ended.returncode != 0 or not {"extracted", "digested", "drawn", "peeked"} & events.keys():
        raise _failure(ended, events, directory, wall_seconds)
    return events


def _no_output(path: Path) -> ExtractionFailed:
    message = f"The extractor did not write the file {path.name}."
    return ExtractionFailed("internal", message, permanent=False)


def _failure(ended: Ended, events: dict[str, dict[str, Any]], directory: Path, wall_seconds: float) -> ExtractionFailed:
    if failed := events.get("failed"):
        code, message = (str(failed.get(name, "internal")) for name in ("code", "message"))
        return ExtractionFailed(code, message, permanent=failed.get("permanent") is True)
    progress = directory / ade_extractor.PROGRESS
    # Use only a few bytes, because the child may have been compromised.
    page = progress.read_bytes()[:20] if progress.is_file() and not progress.is_symlink() else b""
    where = f"after page {int(page)}" if page.isdigit() else "at the first page"
    if ended.signal == "SIGXCPU" or (ended.reason == "timed_out" and ended.cpu_seconds > BUSY_SHARE * wall_seconds):
        return _permanent("too_slow", f"Reading timed out {where}. Simplify or split the file.")
    if ended.over_limit:
        problem = f"Reading exceeded its limit of {ended.over_limit} {where}."
        return _permanent("too_large", f"{problem} Simplify or split the file.")
    if ended.reason == "timed_out":
        message = (
            f"Reading did not finish within {wall_seconds:g} s, because this machine is too busy; it ended {where}."
        )
        return ExtractionFailed("timed_out", message, permanent=False)
    if ended.signal in _OUT_OF_MEMORY:
        problem = f"Reading needed more memory than allowed, or the reader gave up, {where}."
        return _permanent("too_large", f"{problem} Simplify or split the file.")
    if ended.signal in _CRASHES:
        advice = "Open the file with the program that made it and save it again."
        return _permanent("malformed", f"The reader crashed ({ended.signal}) {where}. {advice}")
    return ExtractionFailed("internal", f"The extractor {ended}, {where}.", permanent=False)


def _permanent(code: str, message: str) -> ExtractionFailed:
    return ExtractionFailed(code, message, permanent=True)
