"""Reads the pages of documents with the local extractor or with an external service, depending on the settings.

Both are modules with the same function `extract`, so the caller need not know which module is used.
"""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from documents.children import Run
from documents.extraction import azure, local
from documents.extraction.local import digest as digest
from documents.extraction.outcome import Extraction as Extraction
from documents.extraction.outcome import ExtractionFailed as ExtractionFailed
from work.processes.supervise import Child


def extract(
    file: Path,
    content_type: str,
    first: int,
    last: int,
    directory: Path,
    *,
    wall_seconds: float,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run,
) -> Extraction:
    """Write the pages from `first` to `last` to `pages.json` in the directory. Unfinished files may also remain there.

    Raises ExtractionFailed and CannotStart, and Interrupted if `stop` returns a reason.
    """
    reader = azure.extract if settings.ADE_EXTRACTOR == "azure" else local.extract
    return reader(
        file, content_type, first, last, directory, wall_seconds=wall_seconds, stop=stop, on_start=on_start, run=run
    )
