"""Caches documents on this machine while their segments are read, so that each document is fetched only once."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from uuid import uuid4

from django.conf import settings
from django.db.models.fields.files import FieldFile

from documents.children import POOL
from work.claims import Interrupted

_BLOCK_BYTES = 1 << 20


class Copies:
    """Local copies of the documents that this worker used last, shared by all of its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, _Copy] = OrderedDict()

    def link(self, source: FieldFile, job_id: int, to: Path, stop: Callable[[], str | None]) -> None:
        """Hard-link this job's document to `to`. Fetch the document first if there is no copy yet.

        A program that damages the linked file can only affect later reads of the same document.

        Raises FileNotFoundError if the storage has no such file, and Interrupted if `stop` returns a reason.
        """
        copy = self._copy_of(job_id)
        with copy.lock:
            if copy.path is None or not copy.path.exists():
                copy.path = _fetch(source, stop)
            os.link(copy.path, to)
            if copy.is_forgotten:
                copy.forget()

    def _copy_of(self, job_id: int) -> "_Copy":
        with self._lock:
            copy = self._held.setdefault(job_id, _Copy())
            self._held.move_to_end(job_id)
            copy.used_at = monotonic()
            # Keep one copy per worker thread, and one more for the next document.
            self._forget(list(self._held)[: -settings.ADE_STAGE_CONCURRENCY - 1])
            return copy

    def retire(self, *, everything: bool = False) -> None:
        """Remove copies that have been unused for a while, or all of them."""
        oldest = monotonic() - settings.ADE_WARM_IDLE_SECONDS
        with self._lock:
            self._forget([id for id, copy in self._held.items() if everything or copy.used_at < oldest])

    def _forget(self, job_ids: Iterable[int]) -> None:
        for id in job_ids:
            self._held.pop(id).forget()


class _Copy:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.path: Path | None = None
        self.used_at = 0.0
        self.is_forgotten = False

    def forget(self) -> None:
        """Remove the copy. If a thread is still fetching it, that thread removes it afterwards."""
        self.is_forgotten = True
        if self.path is not None:
            with suppress(FileNotFoundError):
                self.path.unlink()


def _fetch(source: FieldFile, stop: Callable[[], str | None]) -> Path:
    path = POOL.desk().path / f"{uuid4().hex}.document"
    try:
        with source.storage.open(source.name or "", "rb") as stream, path.open("xb") as file:
            while block := stream.read(_BLOCK_BYTES):
                file.write(block)
                if reason := stop():
                    raise Interrupted(reason)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


COPIES = Copies()
