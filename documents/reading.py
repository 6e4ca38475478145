"""Reads one segment of a document's stored file and stores the pages as the output of the stage."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from documents import extraction, outputs
from documents.children import EXTRACTOR, Run, program_directory
from documents.copies import COPIES
from documents.extraction import Extraction, ExtractionFailed
from documents.extraction.local import open_output
from documents.extraction.outcome import OCR_ADVICE
from documents.models import Document
from documents.reader_sessions import SESSIONS, ReaderSession
from work.claims import Claim, Interrupted
from work.journal import Journal
from work.processes.supervise import CannotStart

PAGES_PER_SEGMENT = 25
# Time limit for one segment. Most pages take a millisecond; a scan in small print takes 5 s, and four times as long on
# a slow or busy machine. A process that computes without end reaches its CPU limit earlier.
WALL_SECONDS = 900.0
DOCUMENT = "document"

Counts = dict[str, Any]
# Extracts the document in the given directory by calling the given function, which runs the extractor.
Extract = Callable[[Path, Run], Counts]

log = structlog.get_logger(__name__)


def read(claim: Claim, journal: Journal, document: Document, output: str) -> Counts:
    """Store the output of a segment and return its counts. Raises ExtractionFailed, CannotStart and Interrupted."""
    job_id, segment = claim.values["job_id"], claim.values["segment"]
    extract = partial(_extract, journal, document, segment, output)
    if (session := SESSIONS.take(job_id)) and (result := _try_session(session, extract)):
        return result
    if session := SESSIONS.begin(job_id, journal.why_stop):
        try:
            with ExitStack() as stack:
                stack.callback(session.close)
                link(document, job_id, journal, session.directory)
                result = extract(session.directory, session.run)
                if result["pages_total"] > (segment + 1) * PAGES_PER_SEGMENT:
                    SESSIONS.give_back(session)
                    stack.pop_all()
                return result
        except CannotStart as error:
            log.warning("reading.not_forked", job=job_id, error=str(error))
    with program_directory(EXTRACTOR, journal.why_stop) as place:
        link(document, job_id, journal, place.directory)
        return extract(place.directory, place.run)


def counts(pages_total: int, pages: int, characters: int, scans: int) -> Counts:
    """Return the counts of a segment, with advice if it has scans that could not be read."""
    result: Counts = {"pages_total": pages_total, "pages": pages, "characters": characters}
    if scans:
        advice = f"{scans} of {pages} pages are scans whose text was not read: {OCR_ADVICE}."
        result |= {"scans": scans, "advice": advice}
    return result


def link(document: Document, job_id: int, journal: Journal, directory: Path) -> Path:
    """Link the file of the document into the directory of a child. Raises ExtractionFailed if it is missing."""
    file = directory / DOCUMENT
    try:
        COPIES.link(document.file, job_id, file, journal.why_stop)
    except FileNotFoundError as error:
        message = f"The stored file of the document is missing: {error}"
        raise ExtractionFailed("missing", message, permanent=True) from error
    return file


def _try_session(session: ReaderSession, extract: Extract) -> Counts | None:
    """Extract with a process that already has the document open. Return None if that fails.

    Earlier segments may have worn out the process, so a fresh process must decide whether the document is at fault.
    """
    with ExitStack() as stack:
        stack.callback(session.close)
        try:
            result = extract(session.directory, session.run)
        except (ExtractionFailed, CannotStart) as error:
            if isinstance(error, ExtractionFailed) and error.of_service:
                # A fresh process would not help: the failure is the service's, and calling it again may cost money.
                raise
            log.info("reading.again", job=session.job_id, error=str(error))
            return None
        SESSIONS.give_back(session)
        stack.pop_all()
        return result


def _extract(journal: Journal, document: Document, segment: int, output: str, directory: Path, run: Run) -> Counts:
    first = segment * PAGES_PER_SEGMENT + 1
    pages: Extraction = extraction.extract(
        directory / DOCUMENT,
        document.content_type,
        first,
        first + PAGES_PER_SEGMENT - 1,
        directory,
        wall_seconds=WALL_SECONDS,
        stop=journal.why_stop,
        on_start=journal.keep,
        run=run,
    )
    if reason := journal.why_stop():
        raise Interrupted(reason)
    with open_output(pages.path) as file:
        outputs.store(output, file)
    return counts(pages.pages_total, pages.pages, pages.characters, pages.scans)
