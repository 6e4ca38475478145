"""Reads PDFs and images with Azure Document Intelligence, and all other types with the local extractor."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from ade_services import DOCUMENT_INTELLIGENCE
from documents import breakers, remote_services
from documents.children import COLD_EXTRACTOR, Run
from documents.extraction import local
from documents.extraction.outcome import Extraction, ExtractionFailed
from documents.remote_services import NoAnswer
from work.processes.supervise import Child

PDF, TIFF = "application/pdf", "image/tiff"
# The pause between two polls if the service does not send a Retry-After.
POLL_SECONDS = 2.0


def extract(
    file: Path,
    content_type: str,
    first: int,
    last: int,
    directory: Path,
    *,
    wall_seconds: float,
    stop: Callable[[], str | None] = lambda: None,
    on_start: Callable[[Child], None] = lambda child: None,
    run: Run = COLD_EXTRACTOR,
) -> Extraction:
    """Like `local.extract`, which reads every file first, so that unreadable files are never sent and cost nothing."""
    give_up_at = time.monotonic() + wall_seconds
    is_sent = content_type == PDF or content_type.startswith("image/")
    read = local.extract(
        file,
        content_type,
        first,
        last,
        directory,
        wall_seconds=wall_seconds,
        stop=stop,
        on_start=on_start,
        run=run,
        with_ocr=not is_sent,
    )
    if not is_sent:
        return read
    order = {
        "endpoint": settings.ADE_AZURE_DI_ENDPOINT,
        "key": settings.ADE_AZURE_DI_KEY,
        "model": settings.ADE_AZURE_MODEL,
        "file": str(file.absolute()),
        "has_pages": content_type in (PDF, TIFF),
        "poll_seconds": POLL_SECONDS,
    }
    try:
        answer = remote_services.ask(
            DOCUMENT_INTELLIGENCE,
            order,
            directory,
            wall_seconds=give_up_at - time.monotonic(),
            readable=[file],
            stop=stop,
            on_start=on_start,
        )
    except NoAnswer as error:
        raise ExtractionFailed(
            error.code,
            str(error),
            permanent=error.permanent,
            retry_after=error.retry_after,
            of_service=True,
            away=error.away,
        ) from error
    breakers.record_answer(DOCUMENT_INTELLIGENCE.service)
    return replace(read, characters=int(answer["characters"]), sha256=local.checksum(read.path), scans=0)
