"""Has a file read by the extractor, in a child within limits, and judges how that ended. Asks no database."""

import hashlib
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

import ade_extractor
from documents.extraction.outcome import Extracted, ExtractionFailed
from work import private, supervise
from work.claims import Interrupted
from work.supervise import Child, Ended, Limits

# CPU time follows the wall clock; the extractor itself allows a document less. Events are one line per page.
LIMITS = Limits(address_space_bytes=2 << 30, file_size_bytes=256 << 20, open_files=128, event_bytes=4 << 20)
# What parsers die of. With the last two, pdfium and Rust say that memory has run out.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE")
_OUT_OF_MEMORY = ("SIGABRT", "SIGTRAP", "SIGILL")
# Of the wall clock: whoever had less of a processor was kept waiting by others.
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
    on_progress: Callable[[int, int], None] = lambda page, pages_total: None,
) -> Extracted:
    """The pages from first to last, as `pages.json` in the directory, where it may also leave what is unfinished.

    Raises ExtractionFailed; CannotStart; Interrupted when `stop` has given a reason.
    """
    told: dict[str, dict[str, Any]] = {}
    path = directory / ade_extractor.OUTPUT
    path.unlink(missing_ok=True)

    def hear(event: dict[str, Any]) -> None:
        told[str(event.get("kind"))] = event
        if event.get("kind") == "progress":
            on_progress(int(event["page"]), int(event["pages_total"]))

    ended = supervise.run(
        _command(file, content_type, first, last, directory),
        cwd=directory,
        limits=replace(LIMITS, wall_seconds=wall_seconds, cpu_seconds=max(1, math.ceil(wall_seconds))),
        stop=stop,
        on_start=on_start,
        on_event=hear,
        readable=[file],
        hidden=private.places(),
    )
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    if ended.returncode != 0 or "extracted" not in told:
        raise _failure(ended, told, wall_seconds)
    return Extracted(int(told["extracted"]["pages_total"]), path, _sha256(path))


def _command(file: Path, content_type: str, first: int, last: int, directory: Path) -> list[str]:
    command = [sys.executable, "-I", "-X", "utf8", "-c", ade_extractor.PROGRAM, str(settings.BASE_DIR)]
    options = {"--type": content_type, "--first": first, "--last": last, "--output": directory.absolute()}
    return [*command, "extract", str(file.absolute()), *(str(each) for option in options.items() for each in option)]


def _failure(ended: Ended, told: dict[str, dict[str, Any]], wall_seconds: float) -> ExtractionFailed:
    if failed := told.get("failed"):
        code, message = (str(failed.get(name, "internal")) for name in ("code", "message"))
        return ExtractionFailed(code, message, permanent=failed.get("permanent") is True)
    where = f"after page {told['progress']['page']}" if "progress" in told else "at its first page"
    if ended.signal == "SIGXCPU" or (ended.reason == "timed_out" and ended.cpu_seconds > BUSY_SHARE * wall_seconds):
        return _permanent(
            "too_slow", "that can be read in seconds", f"one that takes longer, {where}", "save it simpler"
        )
    if ended.reason == "timed_out":
        message = f"expected the document to be read within {wall_seconds:g} s, found this machine too busy, {where}"
        return ExtractionFailed("timed_out", message, permanent=False)
    if ended.signal in _OUT_OF_MEMORY:
        found = f"one that needs more memory than it may have, or that its reader gives up on, {where}"
        return _permanent("too_large", "of moderate size", found, "split it, or save it simpler")
    if ended.signal in _CRASHES:
        found = f"one that its reader crashes on ({ended.signal}), {where}"
        return _permanent(
            "malformed", "that can be read", found, "open it with the program that made it, and save it anew"
        )
    return ExtractionFailed("internal", f"the extractor {ended}, {where}", permanent=False)


def _permanent(code: str, expected: str, found: str, advice: str) -> ExtractionFailed:
    return ExtractionFailed(code, f"expected a document {expected}, found {found}: {advice}", permanent=True)


def _sha256(path: Path) -> str:
    """Told by a child that may have been taken over: a link would lead elsewhere, and a pipe never end."""
    if path.is_symlink() or not path.is_file():
        raise ExtractionFailed(
            "internal", f"expected the extractor to leave a file, found none at {path}", permanent=False
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
