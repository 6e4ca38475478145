"""Limits what a document may contain and cost. The process that starts the child sets further limits."""

import math
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A book has some thousand pages; a file that claims more than this is not trusted.
MOST_PAGES = 20_000
# Characters of text. More would be too much for the processes that read the output.
MOST_CHARACTERS = 20_000_000
MOST_CELLS = 1_000_000
# Words with their places are the largest part of an output.
MOST_WORDS_PER_PAGE = 200_000
# Sizes of files that are read into memory whole.
MOST_TEXT_BYTES = 64 << 20
MOST_HTML_BYTES = 16 << 20
MOST_ARCHIVE_BYTES = 512 << 20
MOST_ENTRIES = 10_000
# For opening a file and its first page. Hostile files are detected within 10 s.
FIRST_CPU_SECONDS = 8
NEXT_CPU_SECONDS = 1
# For drawing a page or unpacking an image, which takes tenths of a second, and for importing the OCR engine.
DRAWN_CPU_SECONDS = 8
# For recognising a page. Small print takes 5 s on a fast machine, and the engines give up soon after that.
RECOGNISED_CPU_SECONDS = 60

_started_at = 0.0
# CPU time spent in `apart` or granted by `allow_more`.
_apart = 0.0


def begin() -> None:
    """Start counting, so that earlier work of this process does not count."""
    global _started_at, _apart
    _started_at, _apart = time.process_time(), 0.0
    allow_cpu(0)


def allow_cpu(pages_read: int) -> None:
    """Limit the CPU time so that the kernel ends this process with SIGXCPU, even within a library."""
    _limit_cpu(math.ceil(_started_at + _apart) + FIRST_CPU_SECONDS + pages_read * NEXT_CPU_SECONDS)


def allow_more(seconds: int) -> None:
    """Grant more time for everything that follows, in addition to the time per page."""
    global _apart
    _apart += seconds
    allow_cpu(0)


@contextmanager
def apart(seconds: int) -> Iterator[None]:
    """Grant separate time for what takes longer than reading. The limit stays until the next page."""
    global _apart
    started_at = time.process_time()
    _limit_cpu(math.ceil(started_at) + seconds)
    try:
        yield
    finally:
        _apart += time.process_time() - started_at


def _limit_cpu(seconds: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (max(soft, math.ceil(time.process_time())), hard))
