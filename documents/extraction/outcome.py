from dataclasses import dataclass
from pathlib import Path

# Shown if scans could not be read.
OCR_ADVICE = "install requirements/ocr.txt or Tesseract where the workers run, and process the document again"


class ExtractionFailed(Exception):
    """The document was not read; the message is for people.

    With `permanent`, the same file or the same settings always fail. With `away`, the service would fail for every
    document now. A service may ask for a pause with `retry_after`.
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
    # Pages that consist of an image only and could not be recognised.
    scans: int = 0
