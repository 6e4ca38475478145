"""The check of `manage.py doctor` on stored files: whether the file of each document exists and is intact."""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from django.core.exceptions import SuspiciousFileOperation
from django.core.files.storage import default_storage

from config.findings import Finding, fail, ok
from documents.models import Document
from documents.models.documents import DocumentQuerySet

# The number of files in a sample. With Azure, each file costs a request of some milliseconds.
SAMPLE = 200
# A sample consists of groups of this many consecutive documents, because a lost directory or an interrupted restore
# affects neighbours.
NEIGHBOURS = 10
MOST_OFFENDERS = 10
BLOCK_BYTES = 1 << 20

ADVICE = (
    "Restore these files from a backup under the keys in their rows (`manage.py document show ID`), or upload them"
    " again. `manage.py doctor documents.files --files all` checks every file, and `--files checksums` also reads them."
)


class Files(StrEnum):
    """What to compare: the sizes of a sample of files, the sizes of all files, or the checksums of all files."""

    SAMPLE = "sample"
    ALL = "all"
    CHECKSUMS = "checksums"


def files_are_whole(mode: Files) -> Finding:
    number = 0
    flaws: Counter[str] = Counter()
    offenders: list[tuple[int, str]] = []
    for document in _sample() if mode is Files.SAMPLE else _kept().iterator(chunk_size=1000):
        number += 1
        flaw = _flaw(document, mode)
        # Check the row again, because retention may have removed the file since the row was read.
        if flaw and Document.objects.kept().filter(pk=document.pk, file=document.file.name or "").exists():
            flaws[flaw.partition(" ")[0]] += 1
            offenders.append((document.pk, flaw))
            del offenders[MOST_OFFENDERS:]
    criterion = "size and checksum" if mode is Files.CHECKSUMS else "size"
    if not flaws:
        return ok(f"{number} of {_kept().count()} files compared by {criterion}: all match their documents")
    counts = ", ".join(f"{count} {flaw}" for flaw, count in sorted(flaws.items()))
    examples = "; ".join(f"document {id}: {flaw}" for id, flaw in offenders)
    more = "; and more" if flaws.total() > MOST_OFFENDERS else ""
    message = f"{number} files compared by {criterion}: {counts} ({examples}{more})"
    return fail(message, ADVICE, tuple(("document", id) for id, _ in offenders))


def _kept() -> DocumentQuerySet:
    return Document.objects.kept().only("file", "size_bytes", "sha256").order_by("pk")


def _sample() -> Iterable[Document]:
    """Return all documents if there are few, otherwise the newest group and random groups.

    The queries need only the index of ids.
    """
    kept = _kept()
    first, last = kept.first(), kept.last()
    if first is None or last is None or kept[SAMPLE : SAMPLE + 1].count() == 0:
        return kept
    sample = {each.pk: each for each in kept.reverse()[:NEIGHBOURS]}
    for _ in range(SAMPLE // NEIGHBOURS - 1):
        start = random.randint(first.pk, last.pk)  # noqa: S311  # it selects a sample
        sample |= {each.pk: each for each in kept.filter(pk__gte=start)[:NEIGHBOURS]}
    return [sample[id] for id in sorted(sample)]


def _flaw(document: Document, mode: Files) -> str:
    """Return what is wrong with a document's file, or an empty string. Raise OSError if the storage is unavailable."""
    key = document.file.name or ""
    try:
        size = default_storage.size(key) if key else None
        if size is None:
            return "missing (the row names no file)"
        if size != document.size_bytes:
            what = "truncated" if size < document.size_bytes else "changed"
            return f"{what} ({size:,} of {document.size_bytes:,} bytes)"
        if mode is Files.CHECKSUMS and _checksum(key) != document.sha256:
            return "changed (its checksum differs)"
    except (FileNotFoundError, SuspiciousFileOperation):
        return "missing"
    return ""


def _checksum(key: str) -> str:
    digest = hashlib.sha256()
    with default_storage.open(key) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
