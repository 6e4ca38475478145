"""How a worker does the stages of a processing job. Each reads what the one before has left, and leaves its own."""

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from documents import chunking, embedding, extraction, lifecycle, outputs
from documents.embedding import EmbeddingFailed
from documents.extraction import ExtractionFailed
from documents.models import Document, DocumentChunk, Stage
from work import failpoints
from work.claims import Claim, Interrupted
from work.journal import Journal
from work.supervise import CannotStart

PAGES_PER_SEGMENT = 25
EXPECTED = (ExtractionFailed, EmbeddingFailed, CannotStart)
# For 25 pages, of which most take a millisecond each.
WALL_SECONDS = 120.0
# Of what a stage has made, what the event of its end says.
TOLD = ("pages_total", "pages", "characters", "chunks", "model")
# One insert: of a thousand pages there are some thousand.
ROWS = 500

Made = dict[str, Any]


def do(claim: Claim) -> Made:
    """What the stage has made."""
    journal = Journal(claim)
    try:
        return _WAYS[claim.values["name"]](claim, journal)
    except Interrupted:
        journal.write()
        raise


def succeed(claim: Claim, made: Made) -> bool:
    keep = {"extract": _keep_pages, "publish": _publish}.get(claim.values["name"])
    told = {name: made[name] for name in TOLD if name in made}
    return lifecycle.finish_stage(claim, data=told, also=partial(keep, claim, made) if keep else None)


def fail(claim: Claim, error: BaseException) -> bool:
    if isinstance(error, ExtractionFailed | EmbeddingFailed):
        failure_type = lifecycle.REFUSED if error.permanent else "EXTRACTION_FAILED"
        return lifecycle.fail_stage(claim, failure_type, str(error), retry_after=error.retry_after)
    if isinstance(error, CannotStart):
        return lifecycle.fail_stage(claim, "STAGE_FAILED", str(error))
    return lifecycle.fail_stage(claim, "STAGE_FAILED", f"ADE itself failed: {error!r}")


def text_of(pages: list[dict[str, Any]]) -> str:
    return "\n\n".join(page["text"] for page in pages)


def segments_of(pages: int) -> int:
    return max(1, -(-pages // PAGES_PER_SEGMENT))


def _extract(claim: Claim, journal: Journal) -> Made:
    path = outputs.path_of(claim.values["job_id"], "extract", claim.values["segment"])
    found = outputs.load(path)
    if found is None:
        with _desk() as directory:
            found = _extracted(claim, journal, directory)
        outputs.store(path, found)
    failpoints.hit("job.analysed")
    pages = found["pages"]
    return {"pages_total": found["pages_total"], "pages": len(pages), "characters": sum(len(p["text"]) for p in pages)}


def _extracted(claim: Claim, journal: Journal, directory: Path) -> Any:
    document = _document(claim)
    file = directory / "document"
    try:
        with document.file.open("rb") as source, file.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    except FileNotFoundError as error:
        message = f"expected the stored file of the document, found none: {error}"
        raise ExtractionFailed("missing", message, permanent=True) from error
    first = claim.values["segment"] * PAGES_PER_SEGMENT + 1
    found = extraction.extract(
        file,
        document.content_type,
        first,
        first + PAGES_PER_SEGMENT - 1,
        directory,
        wall_seconds=WALL_SECONDS,
        stop=journal.why_stop,
        on_start=journal.keep,
    )
    return json.loads(found.path.read_bytes())


def _embed(claim: Claim, journal: Journal) -> Made:
    path = outputs.path_of(claim.values["job_id"], "embed")
    found = outputs.load(path)
    if found is None:
        chunks = chunking.chunks([(page["number"], page["text"]) for page in _pages(claim)])
        with _desk() as directory:
            texts = [chunk.text for chunk in chunks]
            vectors = embedding.embed(texts, directory, stop=journal.why_stop, on_start=journal.keep)
        found = {
            "model": vectors.model,
            "mean": base64.b64encode(vectors.mean).decode(),
            "chunks": [
                {
                    "position": chunk.position,
                    "page": chunk.page,
                    "text": chunk.text,
                    "vector": base64.b64encode(each).decode(),
                }
                for chunk, each in zip(chunks, vectors.each, strict=True)
            ],
        }
        outputs.store(path, found)
    failpoints.hit("job.embedded")
    return {"chunks": len(found["chunks"]), "model": found["model"]}


def _prepare_publish(claim: Claim, journal: Journal) -> Made:
    """Reads it all before the transaction in which it is published."""
    pages = _pages(claim)
    embedded = outputs.load(outputs.path_of(claim.values["job_id"], "embed"))
    if embedded is None:
        raise EmbeddingFailed("expected the output of the stage embed, found none or a damaged one")
    return {"pages": len(pages), "text": text_of(pages), "embedded": embedded}


_WAYS = {"extract": _extract, "embed": _embed, "publish": _prepare_publish}


def _keep_pages(claim: Claim, made: Made) -> None:
    """How long the document is decides how many segments follow."""
    _documents(claim).update(pages=made["pages_total"])


def _publish(claim: Claim, made: Made) -> None:
    """All at once, and over what an earlier job has published."""
    embedded, documents = made["embedded"], _documents(claim)
    id = documents.values_list("pk", flat=True).get()
    documents.update(
        text=made["text"],
        pages=made["pages"],
        embedding=base64.b64decode(embedded["mean"]) or None,
        embedding_model=embedded["model"],
    )
    DocumentChunk.objects.filter(document_id=id).delete()
    DocumentChunk.objects.bulk_create(
        (
            DocumentChunk(
                document_id=id,
                position=chunk["position"],
                page=chunk["page"],
                text=chunk["text"],
                embedding=base64.b64decode(chunk["vector"]),
                embedding_model=embedded["model"],
            )
            for chunk in embedded["chunks"]
        ),
        batch_size=ROWS,
    )


def _pages(claim: Claim) -> list[dict[str, Any]]:
    job_id = claim.values["job_id"]
    number = Stage.objects.filter(job_id=job_id, name="extract").count()
    found: list[dict[str, Any]] = []
    for segment in range(number):
        output = outputs.load(outputs.path_of(job_id, "extract", segment))
        if output is None:
            message = f"expected the output of segment {segment}, found none or a damaged one"
            raise ExtractionFailed("lost", message, permanent=False)
        found += output["pages"]
    return found


def _documents(claim: Claim) -> Any:
    return Document.objects.filter(jobs=claim.values["job_id"])


def _document(claim: Claim) -> Document:
    return Document.objects.only("file", "content_type").get(jobs=claim.values["job_id"])


@contextmanager
def _desk() -> Iterator[Path]:
    root = Path(settings.VAR_DIR, "extraction")
    root.mkdir(mode=0o700, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=root))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
