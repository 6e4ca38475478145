"""Removes leftovers: stored files without a row, outputs of ended jobs, idle child processes and old copies.

A file without a row remains when a process dies after it has stored the file and before it has committed the row.
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

from documents import children, outputs, previews, words
from documents.copies import COPIES
from documents.intake import FOLDER, KEY
from documents.models import Document, DocumentProcessingJob
from documents.reader_sessions import SESSIONS
from documents.storage import files
from work import clock
from work.processes import scratch, warm

# Age after which a file counts as abandoned. No upload takes that long, and there is no hurry to free the space.
OLD = timedelta(days=1)
# Files and folders examined per call.
AT_ONCE = 500

log = structlog.get_logger(__name__)


class Sweeper:
    """Walks through all files, one batch per call, and starts over at the end."""

    def __init__(self, walk: Callable[[], Iterator[str | None]], keys_of: Callable[[list[str]], Iterable[str]]) -> None:
        # `walk` yields keys, and None for anything else. `keys_of` returns the keys that have a row and must stay.
        self.walk, self.keys_of = walk, keys_of
        self._rest: Iterator[str | None] = iter(())

    def sweep(self) -> int:
        """Check the next batch, remove its old files that have no row, and return how many were removed."""
        steps = list(islice(self._rest, AT_ONCE))
        if not steps:
            self._rest = self.walk()
            steps = list(islice(self._rest, AT_ONCE))
        keys = [step for step in steps if step is not None]
        with_row = set(self.keys_of(keys)) if keys else set()
        number = 0
        for key in keys:
            # Another worker may have removed the file already.
            with suppress(FileNotFoundError):
                if key not in with_row and default_storage.get_modified_time(key) < clock.now() - OLD:
                    default_storage.delete(key)
                    log.info("housekeeping.removed", file=key)
                    number += 1
        return number


def sweep_blobs(_owner: str = "") -> int:
    """Remove stored files whose document was never created, words that no document refers to, and temporary files of
    uploads that never finished.
    """
    # No file that a web process still uses in this directory is that old.
    oldest = time.time() - OLD.total_seconds()
    with suppress(FileNotFoundError):
        for entry in islice(os.scandir(settings.FILE_UPLOAD_TEMP_DIR), AT_ONCE):
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
    _blobs.sweep()
    _words.sweep()
    # Return 0, because no work waits for this: any other number would wake the worker's threads.
    return 0


def sweep_outputs(_owner: str = "") -> int:
    """Remove stage outputs of jobs that ended at least a day ago, if they were not removed when the job ended."""
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = sorted(default_storage.listdir(outputs.ROOT)[0])
    ids = [int(name) for name in names if name.isdecimal()][:AT_ONCE]
    jobs = DocumentProcessingJob.objects.filter(pk__in=ids).exclude(finished_at__lt=clock.now() - OLD)
    for id in set(ids) - set(jobs.values_list("pk", flat=True)):
        outputs.discard(id)
    return 0


def rest(_owner: str = "") -> int:
    """End child processes that have been idle for a while, or all if memory is short. Remove unused copies."""
    is_short = warm.memory_is_short()
    if is_short:
        SESSIONS.close()
    SESSIONS.retire()
    children.POOL.retire(everything=is_short)
    COPIES.retire()
    return 0


def tidy(_owner: str = "") -> int:
    """Remove old page previews, and directories of child processes whose worker has died."""
    scratch.sweep(children.root())
    previews.tidy()
    return 0


def keys_below(folder: str, pattern: re.Pattern[str]) -> Iterator[str | None]:
    """Yield the keys that match. Yield None for every other key, because it takes time and counts towards the batch."""
    return (key if key and pattern.fullmatch(key) else None for key in files.walk(folder))


def _walk_documents() -> Iterator[str | None]:
    return keys_below(FOLDER, KEY)


def _walk_words() -> Iterator[str | None]:
    return keys_below(words.FOLDER, words.KEY)


def _keys_of_documents(keys: list[str]) -> Iterable[str]:
    return Document.objects.filter(file__in=keys).values_list("file", flat=True)


_blobs = Sweeper(_walk_documents, _keys_of_documents)
_words = Sweeper(_walk_words, words.kept)
