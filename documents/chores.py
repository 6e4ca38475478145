"""Files in the storage that nothing names: left by whoever died between storing one and telling of it."""

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
from documents.sessions import SESSIONS
from documents.storage import files
from work import clock, warm, workplaces

# No upload takes as long, and nobody needs the room at once.
OLD = timedelta(days=1)
# Looked at in one call: files, and folders where there are any.
AT_ONCE = 500

log = structlog.get_logger(__name__)


class Sweeper:
    """Goes through all files, some at a time, and begins again when it has seen them all."""

    def __init__(self, walk: Callable[[], Iterator[str | None]], named: Callable[[list[str]], Iterable[str]]) -> None:
        # Answers keys, and None for what else it meets; what is named of them stays.
        self.walk, self.named = walk, named
        self._rest: Iterator[str | None] = iter(())

    def sweep(self) -> int:
        """Removes what is old and without a row; answers how many files."""
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
    """Remove the files of documents that never came to be, and what was left of requests that nobody has answered."""
    _sweep_uploads()
    _blobs.sweep()
    # Nobody waits for it: the others need not be rung.
    return 0


def sweep_outputs(_owner: str = "") -> int:
    """Remove what stages have left of jobs that ended a while ago, if who ended them did not come to it."""
    ids = [int(name) for name in _folders_in(outputs.ROOT) if name.isdecimal()][:AT_ONCE]
    jobs = DocumentProcessingJob.objects.filter(pk__in=ids).exclude(finished_at__lt=clock.now() - OLD)
    kept = set(jobs.values_list("pk", flat=True))
    for id in set(ids) - kept:
        outputs.discard(id)
    return 0


def rest(_owner: str = "") -> int:
    """End the children that nobody has needed for a while, and all when memory is short. Remove copies as old."""
    is_short = warm.memory_is_short()
    if is_short:
        SESSIONS.close()
    SESSIONS.retire()
    children.POOL.retire(everything=is_short)
    COPIES.retire()
    return 0


def tidy(_owner: str = "") -> int:
    """Remove the directories of children whose worker has died, and pictures of pages that are old."""
    workplaces.sweep(children.root())
    previews.tidy()
    return 0


def keys_below(folder: str, pattern: re.Pattern[str]) -> Iterator[str | None]:
    """None for what does not match: looking at it takes its time too."""
    return (key if key and pattern.fullmatch(key) else None for key in files.walk(folder))


def _uploaded() -> Iterator[str | None]:
    return keys_below(FOLDER, KEY)


def _named(keys: list[str]) -> Iterable[str]:
    return Document.objects.filter(file__in=keys).values_list("file", flat=True)


_blobs = Sweeper(_uploaded, _named)


def _sweep_uploads() -> None:
    """On this machine: what a web process has in use is young."""
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
    # Somebody else may have been quicker.
    with suppress(FileNotFoundError):
        if default_storage.get_modified_time(key) < clock.now() - OLD:
            default_storage.delete(key)
            log.info("chores.removed", file=key)
            return True
    return False
