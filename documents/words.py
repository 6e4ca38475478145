"""Stores the words of a document's pages with their places, one file per processing job.

The stage embed stores the file before its own output. The stage publish refers to it in `Document.words_job`; the file
of the job before then has no reference any more, and the sweeper in `documents/periodic.py` removes it.
"""

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import F, Q

from documents import outputs
from documents.models import DocumentProcessingJob

FOLDER = "words"
# Increase this when the format changes. Older files then count as missing until the document is processed again.
VERSION = 1
KEY = re.compile(rf"{FOLDER}/[0-9]{{4,}}/[0-9]+-v[0-9]+\.json\.gz")
_JOBS_PER_FOLDER = 1000
# A file that unpacks to more than this was not written by ADE.
MOST_BYTES = 64 << 20

# A page: its number, and its words as lists of a text and its box.
Page = dict[str, Any]


def key_of(job_id: int) -> str:
    return f"{FOLDER}/{job_id // _JOBS_PER_FOLDER:04}/{job_id}-v{VERSION}.json.gz"


def store(job_id: int, pages: Sequence[Page]) -> None:
    """Store the words unless there are none. Workers that do the same stage store the same bytes."""
    if pages:
        text = json.dumps(pages, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        outputs.store(key_of(job_id), BytesIO(gzip.compress(text.encode(), mtime=0)))


def load(job_id: int | None) -> list[Page]:
    """Return the pages with words, or an empty list if none are stored or the file is damaged."""
    file = outputs.open_file(key_of(job_id)) if job_id else None
    if file is None:
        return []
    with file, gzip.open(file) as unpacked:
        text = unpacked.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"The words of job {job_id} are larger than {MOST_BYTES:,} bytes.")
    pages: list[Page] = json.loads(text)
    return pages


def copy(job_id: int, to: Path) -> bool:
    """Copy the compressed file. Return False if none is stored or it is damaged."""
    return outputs.fetch(key_of(job_id), to)


def discard(job_id: int) -> None:
    with suppress(FileNotFoundError):
        default_storage.delete(key_of(job_id))


def kept(keys: Sequence[str]) -> Iterable[str]:
    """Return the keys of files that a document refers to, or whose job may still publish them."""
    by_job = {int(key.rpartition("/")[2].partition("-")[0]): key for key in keys}
    needed = Q(finished_at__isnull=True) | Q(document__words_job=F("pk"))
    jobs = DocumentProcessingJob.objects.filter(needed, pk__in=by_job)
    return {by_job[id] for id in jobs.values_list("pk", flat=True)} & {key_of(id) for id in by_job}
