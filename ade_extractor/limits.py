"""What a document may be and cost. Whoever starts the child sets limits of its own around these."""

import math
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A document of some thousand pages is a book; more than this is a claim.
MOST_PAGES = 20_000
# Of text: forty times the Bible would be too much for whoever reads the output.
MOST_CHARACTERS = 20_000_000
MOST_CELLS = 1_000_000
# Words with their places are what makes an output large.
MOST_WORDS_PER_PAGE = 200_000
# Of files that are read into memory whole.
MOST_TEXT_BYTES = 64 << 20
MOST_HTML_BYTES = 16 << 20
MOST_ARCHIVE_BYTES = 512 << 20
MOST_ENTRIES = 10_000
# For opening and the first page. Hostile files are told within 10 s.
FIRST_CPU_SECONDS = 8
NEXT_CPU_SECONDS = 1
# For drawing a page as people see it, or unpacking an image: either takes tenths of a second. Also for the import of
# what recognises.
DRAWN_CPU_SECONDS = 8
# For recognising a page. Small print takes 5 s on a fast machine, others are slower or busy, and whatever is on a page,
# not much more than that is tried.
RECOGNISED_CPU_SECONDS = 60

_begun_at = 0.0
# Of what came since then.
_apart = 0.0


def begin() -> None:
    """What this process has done before does not count."""
    global _begun_at, _apart
    _begun_at, _apart = time.process_time(), 0.0
    allow_cpu(0)


def allow_cpu(pages_read: int) -> None:
    """From here on the kernel ends this process with SIGXCPU once it has had its time: also within a library."""
    _limit_cpu(math.ceil(_begun_at + _apart) + FIRST_CPU_SECONDS + pages_read * NEXT_CPU_SECONDS)


def allow_more(seconds: int) -> None:
    """For all that follows, beside what each page is allowed."""
    global _apart
    _apart += seconds
    allow_cpu(0)


@contextmanager
def apart(seconds: int) -> Iterator[None]:
    """A time of its own for what takes longer than reading. It holds until the next page."""
    global _apart
    began = time.process_time()
    _limit_cpu(math.ceil(began) + seconds)
    try:
        yield
    finally:
        _apart += time.process_time() - began


def _limit_cpu(wanted: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (max(soft, math.ceil(time.process_time())), hard))
