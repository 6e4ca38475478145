from dataclasses import dataclass
from pathlib import Path

# For whoever has scans that nobody has read.
OCR_ADVICE = "install requirements/ocr.txt, or tesseract, where the workers are, and process the document again"


class ExtractionFailed(Exception):
    """Says in words for people what was expected and what was found. Permanent: the same file ends the same way, or
    the same settings do. A service may ask for a pause before it is asked again.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        permanent: bool,
        retry_after: float | None = None,
        of_service: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.permanent = permanent
        self.retry_after = retry_after
        self.of_service = of_service


@dataclass(frozen=True)
class Extracted:
    pages_total: int
    # Of those that were asked for.
    pages: int
    characters: int
    path: Path
    sha256: str
    # Pages that are only an image, and that nobody could read.
    scans: int = 0
