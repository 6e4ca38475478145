"""Does the work of stages. Each stage reads the output of the previous stage and stores its own."""

from collections.abc import Callable
from typing import Any

from ade_services import DOCUMENT_INTELLIGENCE, OPENAI
from documents import breakers, embedding, extraction, lifecycle, outputs, publication, reading, words
from documents.children import EMBEDDER, EXTRACTOR, program_directory
from documents.embedding import EmbeddingFailed
from documents.extraction import ExtractionFailed
from documents.models import Document, Stage
from work import failpoints
from work.claims import Claim, Interrupted, ResultRefused
from work.journal import Journal
from work.processes.supervise import CannotStart

# Values of a result that are recorded in the event when a stage finishes.
EVENT_DATA = ("pages_total", "pages", "characters", "scans", "advice", "chunks", "fields", "tables", "model")

Result = dict[str, Any]


class OutputLost(Exception):
    """The output of an earlier stage is missing, so that stage must be repeated."""


EXPECTED = (ExtractionFailed, EmbeddingFailed, OutputLost, CannotStart, OSError)


def do(claim: Claim) -> Result:
    journal = Journal(claim)
    try:
        return _WORK[claim.values["name"]](claim, journal)
    except Interrupted:
        journal.write()
        raise


def succeed(claim: Claim, result: Result) -> bool:
    documents = Document.objects.filter(jobs=claim.values["job_id"])
    writes: dict[str, Callable[[], object]] = {
        # The number of pages decides how many segments follow.
        Stage.Name.EXTRACT: lambda: documents.update(pages=result["pages_total"]),
        Stage.Name.PUBLISH: lambda: publication.publish(
            documents.values_list("pk", flat=True).get(),
            result["file"],
            words_job=claim.values["job_id"] if result["words"] else None,
            pages=result["words"],
        ),
    }
    data = {name: result[name] for name in EVENT_DATA if isinstance(result.get(name), int | str)}
    is_ended = lifecycle.finish_stage(claim, data=data, also=writes.get(claim.values["name"]))
    # Close the file only now: if the database is briefly unavailable, `succeed` is called again and needs the file.
    if file := result.get("file"):
        file.close()
    return is_ended


def fail(claim: Claim, error: BaseException) -> bool:
    if isinstance(error, ExtractionFailed | EmbeddingFailed):
        if error.of_service and _was_service_away(error):
            return lifecycle.postpone_stage(claim, str(error))
        failure_type = "EMBEDDING_FAILED" if isinstance(error, EmbeddingFailed) else "EXTRACTION_FAILED"
        if error.permanent:
            is_document = isinstance(error, ExtractionFailed) and not error.of_service
            failure_type = lifecycle.REFUSED if is_document else lifecycle.SERVICE_REFUSED
        return lifecycle.fail_stage(claim, failure_type, str(error), retry_after=error.retry_after)
    if isinstance(error, OutputLost):
        return lifecycle.fail_stage(claim, lifecycle.OUTPUT_LOST, str(error))
    if isinstance(error, CannotStart | ResultRefused):
        return lifecycle.fail_stage(claim, "STAGE_FAILED", str(error))
    if isinstance(error, OSError):
        message = f"Could not read or write the document's files: {error.strerror or error}."
        return lifecycle.fail_stage(claim, "STORAGE_FAILED", message)
    return lifecycle.fail_stage(claim, "STAGE_FAILED", f"Internal error: {error!r}")


def segments_of(pages: int) -> int:
    return max(1, -(-pages // reading.PAGES_PER_SEGMENT))


def _was_service_away(error: ExtractionFailed | EmbeddingFailed) -> bool:
    """Record the failure. Return whether the service was already known to be away.

    If it was, the stage waits, and no attempt is counted.
    """
    service = (DOCUMENT_INTELLIGENCE if isinstance(error, ExtractionFailed) else OPENAI).service
    if error.permanent:
        # A service that refuses a request is not away: it has answered.
        breakers.record_answer(service)
        return False
    return not breakers.record_failure(service, str(error), retry_after=error.retry_after, opens=error.away)


def _extract(claim: Claim, journal: Journal) -> Result:
    path = outputs.path_of(claim.values["job_id"], Stage.Name.EXTRACT, claim.values["segment"])
    output = outputs.load(path)
    if output is None:
        result = reading.read(claim, journal, _document(claim), path)
    else:
        characters = sum(len(page["text"]) for page in output["pages"])
        result = reading.counts(output["pages_total"], len(output["pages"]), characters, output.get("scans", 0))
    failpoints.hit("job.analysed")
    return result


def _embed(claim: Claim, journal: Journal) -> Result:
    path = outputs.path_of(claim.values["job_id"], Stage.Name.EMBED)
    file = outputs.open_file(path)
    if file is None:
        digest = _digest(claim, journal)
        texts = [chunk["text"] for chunk in digest["chunks"]]
        with program_directory(EMBEDDER, journal.why_stop, is_warm=embedding.is_local()) as place:
            vectors = embedding.embed(
                texts, place.directory, stop=journal.why_stop, on_start=journal.keep, run=place.run
            )
        if texts and not embedding.is_local():
            breakers.record_answer(OPENAI.service)
        file = publication.write_file(digest, vectors)
        # First the words: once the output is complete, this stage is not repeated.
        words.store(claim.values["job_id"], digest.get("words", []))
        outputs.store(path, file)
    failpoints.hit("job.embedded")
    with file:
        return publication.counts(file)


def _digest(claim: Claim, journal: Journal) -> Result:
    """Return the text, chunks and fields of a document.

    A child process reads the pages, because a long document needs more memory than a whole worker.
    """
    document, job_id = _document(claim), claim.values["job_id"]
    with program_directory(EXTRACTOR, journal.why_stop) as place:
        file = reading.link(document, job_id, journal, place.directory)
        segments = []
        for number in range(Stage.objects.filter(job_id=job_id, name=Stage.Name.EXTRACT).count()):
            segment = place.directory / f"segment-{number:05}.json"
            if not outputs.fetch(outputs.path_of(job_id, Stage.Name.EXTRACT, number), segment):
                raise OutputLost(f"The output of segment {number} is missing or damaged.")
            segments.append(segment)
        digest: Result = extraction.digest(
            file,
            document.content_type,
            segments,
            place.directory,
            wall_seconds=reading.WALL_SECONDS,
            stop=journal.why_stop,
            on_start=journal.keep,
            run=place.run,
        )
    return digest


def _prepare_publish(claim: Claim, journal: Journal) -> Result:
    """Copy the output of the stage embed to a temporary file, before the transaction that publishes it begins."""
    file = outputs.open_file(outputs.path_of(claim.values["job_id"], Stage.Name.EMBED))
    if file is None:
        raise OutputLost("The output of the stage embed is missing or damaged.")
    return publication.counts(file) | {"file": file, "words": words.load(claim.values["job_id"])}


_WORK = {Stage.Name.EXTRACT: _extract, Stage.Name.EMBED: _embed, Stage.Name.PUBLISH: _prepare_publish}


def _document(claim: Claim) -> Document:
    return Document.objects.only("file", "content_type").get(jobs=claim.values["job_id"])
