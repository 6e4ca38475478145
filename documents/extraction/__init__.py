"""Reads the pages of documents: by the extractor of this machine, or by a service that the settings name.

Each is a module with one function, `extract`, and whoever asks does not see which of them has answered.
"""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from documents.children import Run
from documents.extraction import azure, local
from documents.extraction.local import digest as digest
from documents.extraction.outcome import Extracted as Extracted
from documents.extraction.outcome import ExtractionFailed as ExtractionFailed
from work.supervise import Child


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
) -> Extracted:
    """The pages from first to last, as `pages.json` in the directory, where it may also leave what is unfinished.

    Raises ExtractionFailed; CannotStart; Interrupted when `stop` has given a reason.
    """
    reader = azure.extract if settings.ADE_EXTRACTOR == "azure" else local.extract
    return reader(
        file, content_type, first, last, directory, wall_seconds=wall_seconds, stop=stop, on_start=on_start, run=run
    )
