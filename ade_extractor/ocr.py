"""Has read what is only an image, by what is there: rapidocr (requirements/ocr.txt), else tesseract on the PATH.

What reads is imported when the first page needs it.
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
# A sheet of A4 at 200 dpi, and a bit. More makes it slower, and not better.
MOST_PIXELS = 4_200_000
# Of a till receipt. What is longer is no page.
MOST_SIDE = 6000
# No letter is smaller.
LEAST_SIDE = 10


class Picture(NamedTuple):
    """Grey, one byte for each pixel, in rows from the top."""

    width: int
    height: int
    # From one row to the next.
    stride: int
    data: bytes


class Recognised(NamedTuple):
    engine: str
    text: str = ""
    # JSON, as in `Page`.
    words: str = "[]"
    # None where nothing was found.
    confidence: float | None = None
    # Not so when there was more than anybody writes on a page.
    is_whole: bool = True
    # The image says of itself that it lies so: its width is the height of what people see.
    is_on_its_side: bool = False

    def onto(self, page: Page) -> Page:
        size = (page.height, page.width) if self.is_on_its_side else (page.width, page.height)
        recognition = Recognition(self.engine, self.confidence, self.is_whole)
        return Page(page.number, self.text, *size, self.words, images=page.images, recognition=recognition)


# Somebody else reads what is an image.
off = False
_engine = cache(ocr_engine)


def engine() -> str | None:
    return None if off else _engine()


def scale_for(width: float, height: float, wanted: float) -> float:
    """As wanted, or smaller, so that what comes out is not too large."""
    return min(wanted, sqrt(MOST_PIXELS / (width * height)), MOST_SIDE / max(width, height))


def read_picture(picture: Picture) -> Recognised:
    if min(picture.width, picture.height) < LEAST_SIDE:
        return Recognised(str(engine()))
    found: Recognised = _reader().read_picture(picture)
    return found


def read_image(path: Path, content_type: str, index: int, size: tuple[int, int]) -> Recognised:
    """An image of this size, which is the one of this index in its file. Raises Trouble."""
    if min(size) * scale_for(*size, 1) < LEAST_SIDE:
        return Recognised(str(engine()))
    found: Recognised = _reader().read_image(path, content_type, index)
    return found


@cache
def _reader() -> Any:
    # Otherwise numeric libraries start a thread for each core, which reserves addresses, and tesseract takes ten times
    # as long.
    os.environ["OMP_NUM_THREADS"] = os.environ["OMP_THREAD_LIMIT"] = "1"
    with limits.apart(limits.DRAWN_CPU_SECONDS):
        return importlib.import_module(ENGINES[str(engine())])
