from dataclasses import dataclass
from pathlib import Path

# Shown when scans could not be read.
OCR_ADVICE = "install requirements/ocr.txt or Tesseract where the workers run, and process the document again"


class ExtractionFailed(Exception):
    """The document was not read; the message is for people.

    `permanent`: another attempt with the same file and settings would fail too. `away`: the service would currently
    fail for every document. `retry_after`: the pause that the service asks for, in seconds.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        permanent: bool,
        retry_after: float | None = None,
        of_service: bool = False,
        away: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.permanent = permanent
        self.retry_after = retry_after
        self.of_service = of_service
        self.away = away


@dataclass(frozen=True)
class Extraction:
    pages_total: int
    # The number of pages within the requested range.
    pages: int
    characters: int
    path: Path
    sha256: str
    # The number of pages that consist only of an image and whose text could not be recognised.
    scans: int = 0
