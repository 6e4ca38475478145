"""Recognises text in images with the installed engine: rapidocr (requirements/ocr.txt), otherwise tesseract.

The engine is imported when the first page needs it.
"""

import importlib
import os
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from ade_extractor import limits, ocr_engine
from ade_extractor.pages import Page, Recognition

ENGINES = {"rapidocr": "ade_extractor.rapid", "tesseract": "ade_extractor.tesseract"}
# Slightly more than A4 at 200 dpi. More pixels make recognition slower, but not better.
MOST_PIXELS = 4_200_000
# The length of a till receipt.
MOST_SIDE = 6000
# No letter is smaller.
LEAST_SIDE = 10


class GreyPicture(NamedTuple):
    """A grey picture with one byte per pixel, in rows from the top."""

    width: int
    height: int
    # Bytes per row, including padding.
    stride: int
    data: bytes


class OcrResult(NamedTuple):
    engine: str
    text: str = ""
    # JSON, as in `Page`.
    words: str = "[]"
    # None if no text was found.
    confidence: float | None = None
    # False if the engine gave up, because there was more than a page can hold.
    is_whole: bool = True
    # The image's metadata says that people see it turned by 90 degrees, so width and height are swapped.
    is_on_its_side: bool = False

    def apply_to(self, page: Page) -> Page:
        size = (page.height, page.width) if self.is_on_its_side else (page.width, page.height)
        recognition = Recognition(self.engine, self.confidence, self.is_whole)
        return Page(page.number, self.text, *size, self.words, images=page.images, recognition=recognition)


# Set if a service reads the images instead.
off = False
_engine = cache(ocr_engine)


def engine() -> str | None:
    return None if off else _engine()


def scale_for(width: float, height: float, scale: float) -> float:
    """Return this scale, or a smaller one if the result would be too large."""
    return min(scale, sqrt(MOST_PIXELS / (width * height)), MOST_SIDE / max(width, height))


def read_picture(picture: GreyPicture) -> OcrResult:
    if min(picture.width, picture.height) < LEAST_SIDE:
        return OcrResult(str(engine()))
    result: OcrResult = _reader().read_picture(picture)
    return result


def read_image(path: Path, content_type: str, index: int, size: tuple[int, int]) -> OcrResult:
    """Recognise the image with this size and index in its file. Raises Trouble."""
    if min(size) * scale_for(*size, 1) < LEAST_SIDE:
        return OcrResult(str(engine()))
    result: OcrResult = _reader().read_image(path, content_type, index)
    return result


@cache
def _reader() -> Any:
    # Otherwise numeric libraries start a thread per core, which reserves address space and makes tesseract very slow.
    os.environ["OMP_NUM_THREADS"] = os.environ["OMP_THREAD_LIMIT"] = "1"
    with limits.apart(limits.DRAWN_CPU_SECONDS):
        return importlib.import_module(ENGINES[str(engine())])
