"""Does the stages of a processing job. Each reads the output of the stage before it and stores its own."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ade_services import DOCUMENT_INTELLIGENCE, OPENAI
from documents import breakers, embedding, extraction, lifecycle, outputs, publication, reading
from documents.children import EMBEDDER, EXTRACTOR, place_for
from documents.embedding import EmbeddingFailed, Vectors
from documents.extraction import ExtractionFailed
from documents.models import Document, Stage
from work import failpoints
from work.claims import Claim, Interrupted
from work.journal import Journal
from work.processes.supervise import CannotStart

# The parts of a result that the event of a finished stage records.
TOLD = ("pages_total", "pages", "characters", "scans", "advice", "chunks", "fields", "model")

Made = dict[str, Any]


class OutputLost(Exception):
    """The output of an earlier stage is missing and has to be made again."""


EXPECTED = (ExtractionFailed, EmbeddingFailed, OutputLost, CannotStart, OSError)


def do(claim: Claim) -> Made:
    """Do the stage and return its result."""
    journal = Journal(claim)
    try:
        return _WAYS[claim.values["name"]](claim, journal)
    except Interrupted:
        journal.write()
        raise


def succeed(claim: Claim, made: Made) -> bool:
    keep = {"extract": _keep_pages, "publish": _publish}.get(claim.values["name"])
    told = {name: made[name] for name in TOLD if isinstance(made.get(name), int | str)}
    ended = lifecycle.finish_stage(claim, data=told, also=partial(keep, claim, made) if keep else None)
    # Close the file only now: if the database was unavailable for a moment, all of this is repeated.
    if file := made.get("file"):
        file.close()
    return ended


def fail(claim: Claim, error: BaseException) -> bool:
    if isinstance(error, ExtractionFailed | EmbeddingFailed):
        if _is_of_no_attempt(error):
            return lifecycle.postpone_stage(claim, str(error))
        return lifecycle.fail_stage(claim, _failure_type(error), str(error), retry_after=error.retry_after)
    if isinstance(error, OutputLost):
        return lifecycle.fail_stage(claim, lifecycle.OUTPUT_LOST, str(error))
    if isinstance(error, CannotStart):
        return lifecycle.fail_stage(claim, "STAGE_FAILED", str(error))
    if isinstance(error, OSError):
        message = f"Could not read or write the document's files: {error.strerror or error}."
        return lifecycle.fail_stage(claim, "STORAGE_FAILED", message)
    return lifecycle.fail_stage(claim, "STAGE_FAILED", f"Internal error: {error!r}")


def _is_of_no_attempt(error: ExtractionFailed | EmbeddingFailed) -> bool:
    """Return whether the service was already known to be away, so that the stage waits and no attempt is counted."""
    if not error.of_service:
        return False
    asked = DOCUMENT_INTELLIGENCE if isinstance(error, ExtractionFailed) else OPENAI
    if error.permanent:
        # A service that refuses a request does answer.
        breakers.record_answer(asked.service)
        return False
    return not breakers.record_failure(asked.service, str(error), retry_after=error.retry_after, opens=error.away)


def _failure_type(error: ExtractionFailed | EmbeddingFailed) -> str:
    is_document = isinstance(error, ExtractionFailed) and not error.of_service
    if error.permanent:
        return lifecycle.REFUSED if is_document else lifecycle.SERVICE_REFUSED
    return "EMBEDDING_FAILED" if isinstance(error, EmbeddingFailed) else "EXTRACTION_FAILED"


def segments_of(pages: int) -> int:
    return max(1, -(-pages // reading.PAGES_PER_SEGMENT))


def _extract(claim: Claim, journal: Journal) -> Made:
    path = outputs.path_of(claim.values["job_id"], "extract", claim.values["segment"])
    made = _told_of(outputs.load(path)) or reading.read(claim, journal, _document(claim), path)
    failpoints.hit("job.analysed")
    return made


def _told_of(output: Any) -> Made | None:
    if output is None:
        return None
    characters = sum(len(page["text"]) for page in output["pages"])
    return reading.told(output["pages_total"], len(output["pages"]), characters, output.get("scans", 0))


def _embed(claim: Claim, journal: Journal) -> Made:
    path = outputs.path_of(claim.values["job_id"], "embed")
    file = outputs.opened(path)
    if file is None:
        digested = _digested(claim, journal)
        vectors = _vectors(digested, journal)
        file = publication.written(digested, vectors)
        outputs.store_file(path, file)
    failpoints.hit("job.embedded")
    with file:
        return publication.told(file)


def _digested(claim: Claim, journal: Journal) -> Made:
    """Return the text, chunks and fields of a document.

    A child reads the pages, because a long document takes more memory than a whole worker.
    """
    document = _document(claim)
    with place_for(EXTRACTOR, journal.why_stop) as place:
        file = reading.lay(document, claim.values["job_id"], journal, place.directory)
        made: Made = extraction.digest(
            file,
            document.content_type,
            list(_fetched(claim, place.directory)),
            place.directory,
            wall_seconds=reading.WALL_SECONDS,
            stop=journal.why_stop,
            on_start=journal.keep,
            run=place.run,
        )
    return made


def _fetched(claim: Claim, directory: Path) -> Iterator[Path]:
    job_id = claim.values["job_id"]
    for segment in range(Stage.objects.filter(job_id=job_id, name="extract").count()):
        file = directory / f"segment-{segment:05}.json"
        if not outputs.fetch(outputs.path_of(job_id, "extract", segment), file):
            raise OutputLost(f"The output of segment {segment} is missing or damaged.")
        yield file


def _vectors(digested: Made, journal: Journal) -> Vectors:
    texts = [chunk["text"] for chunk in digested["chunks"]]
    with place_for(EMBEDDER, journal.why_stop, is_warm=embedding.is_local()) as place:
        made = embedding.embed(texts, place.directory, stop=journal.why_stop, on_start=journal.keep, run=place.run)
    if texts and not embedding.is_local():
        breakers.record_answer(OPENAI.service)
    return made


def _prepare_publish(claim: Claim, journal: Journal) -> Made:
    """Load the complete output into a file before the transaction that publishes it."""
    file = outputs.opened(outputs.path_of(claim.values["job_id"], "embed"))
    if file is None:
        raise OutputLost("The output of the stage embed is missing or damaged.")
    return publication.told(file) | {"file": file}


_WAYS = {"extract": _extract, "embed": _embed, "publish": _prepare_publish}


def _keep_pages(claim: Claim, made: Made) -> None:
    """Store the number of pages, which decides how many segments follow."""
    _documents(claim).update(pages=made["pages_total"])


def _publish(claim: Claim, made: Made) -> None:
    publication.publish(_documents(claim).values_list("pk", flat=True).get(), made["file"])


def _documents(claim: Claim) -> Any:
    return Document.objects.filter(jobs=claim.values["job_id"])


def _document(claim: Claim) -> Document:
    return Document.objects.only("file", "content_type").get(jobs=claim.values["job_id"])
