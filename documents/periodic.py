"""Removes leftovers: stored files without a row, outputs of ended jobs, idle child processes and old copies.

Files without a row stay behind when a process dies between storing a file and committing its row.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import islice

import structlog
from django.conf import settings
from django.core.files.storage import default_storage

from documents import children, outputs, previews
from documents.copies import COPIES
from documents.intake import FOLDER, KEY
from documents.models import Document, DocumentProcessingJob
from documents.reader_sessions import SESSIONS
from documents.storage import files
from work import clock
from work.processes import scratch, warm

# Age after which a file counts as abandoned. No upload takes that long, and the space is not urgent.
OLD = timedelta(days=1)
# Files and folders examined per call.
AT_ONCE = 500

log = structlog.get_logger(__name__)


class Sweeper:
    """Walks through all files in batches and starts over at the end."""

    def __init__(self, walk: Callable[[], Iterator[str | None]], named: Callable[[list[str]], Iterable[str]]) -> None:
        # `walk` yields keys, and None for anything else. `named` returns the keys that have a row and must stay.
        self.walk, self.named = walk, named
        self._rest: Iterator[str | None] = iter(())

    def sweep(self) -> int:
        """Remove old files without a row from the next batch, and return their number."""
        keys = self._next()
        named = set(self.named(keys)) if keys else set()
        return sum(_remove_old(key) for key in keys if key not in named)

    def _next(self) -> list[str]:
        steps = list(islice(self._rest, AT_ONCE))
        if not steps:
            self._rest = self.walk()
            steps = list(islice(self._rest, AT_ONCE))
        return [step for step in steps if step is not None]


def sweep_blobs(_owner: str = "") -> int:
    """Remove files of documents that were never created, and temporary uploads of requests that never finished."""
    _sweep_uploads()
    _blobs.sweep()
    # No work waits for this, so 0 keeps the worker from waking its slots.
    return 0


def sweep_outputs(_owner: str = "") -> int:
    """Remove stage outputs of jobs that ended at least a day ago, if they were not removed at the end."""
    ids = [int(name) for name in _folders_in(outputs.ROOT) if name.isdecimal()][:AT_ONCE]
    jobs = DocumentProcessingJob.objects.filter(pk__in=ids).exclude(finished_at__lt=clock.now() - OLD)
    kept = set(jobs.values_list("pk", flat=True))
    for id in set(ids) - kept:
        outputs.discard(id)
    return 0


def rest(_owner: str = "") -> int:
    """End child processes that have been idle for a while (all if memory is short), and remove unused copies."""
    is_short = warm.memory_is_short()
    if is_short:
        SESSIONS.close()
    SESSIONS.retire()
    children.POOL.retire(everything=is_short)
    COPIES.retire()
    return 0


def tidy(_owner: str = "") -> int:
    """Remove the directories of child processes whose worker has died, and old page previews."""
    scratch.sweep(children.root())
    previews.tidy()
    return 0


def keys_below(folder: str, pattern: re.Pattern[str]) -> Iterator[str | None]:
    """Yield the keys that match, and None for each that does not, because those take time too and must count."""
    return (key if key and pattern.fullmatch(key) else None for key in files.walk(folder))


def _uploaded() -> Iterator[str | None]:
    return keys_below(FOLDER, KEY)


def _named(keys: list[str]) -> Iterable[str]:
    return Document.objects.filter(file__in=keys).values_list("file", flat=True)


_blobs = Sweeper(_uploaded, _named)


def _sweep_uploads() -> None:
    """Remove old temporary uploads of this machine. Files that a web process still uses are never that old."""
    oldest = time.time() - OLD.total_seconds()
    with suppress(FileNotFoundError):
        for entry in islice(os.scandir(settings.FILE_UPLOAD_TEMP_DIR), AT_ONCE):
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)


def _folders_in(path: str) -> list[str]:
    try:
        return sorted(default_storage.listdir(path)[0])
    except FileNotFoundError:
        return []


def _remove_old(key: str) -> bool:
    # Another worker may have removed it already.
    with suppress(FileNotFoundError):
        if default_storage.get_modified_time(key) < clock.now() - OLD:
            default_storage.delete(key)
            log.info("housekeeping.removed", file=key)
            return True
    return False
