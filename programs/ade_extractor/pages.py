"""Defines the pages of a document and writes them."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ade_extractor import OUTPUT, VERSION
from ade_extractor.limits import MOST_CHARACTERS
from ade_extractor.trouble import too_large

Box = tuple[float, float, float, float]


class Recognition(NamedTuple):
    """How the text of a page was recognised. The confidence is None if there is no text."""

    engine: str
    confidence: float | None
    # False if recognition gave up, so that text may be missing.
    is_whole: bool


class Table(NamedTuple):
    rows: list[list[str]]
    # As fractions of the page from its top left corner; None if the page has no places.
    box: Box | None = None


@dataclass(slots=True)
class Page:
    number: int
    text: str
    # In points, or in pixels for an image. None if pages have no size.
    width: float | None = None
    height: float | None = None
    # Encoded JSON: lists of a word and its box.
    words: str = "[]"
    # Computes `words` if that takes longer than reading the page; only works while this page is being read.
    find_words: Callable[[], str] | None = None
    # Finds the lines drawn on the page, with left, top, right and bottom as fractions of it.
    find_rulings: Callable[[], list[Box]] | None = None
    tables: list[Table] = field(default_factory=list)
    images: int = 0
    recognition: Recognition | None = None

    @property
    def is_unread(self) -> bool:
        """Whether the page is a scan without recognised text. Only pages of PDF and image files have a size."""
        return bool(self.images) and self.width is not None and not (self.text.strip() or self.recognition)

    def place_words(self) -> None:
        if self.find_words is not None:
            self.words = self.find_words()

    def to_json(self) -> str:
        recognition = None
        if self.recognition:
            engine, confidence, is_whole = self.recognition
            recognition = {"confidence": confidence, "engine": engine, "whole": is_whole}
        values = {
            "has_text": bool(self.text.strip()),
            "height": self.height,
            "images": self.images,
            "number": self.number,
            "ocr": recognition,
            "tables": [{"box": table.box, "rows": table.rows} for table in self.tables],
            "text": self.text,
            "width": self.width,
        }
        # "words" comes last, so that all keys are in alphabetical order.
        return f'{_encode(values)[:-1]},"words":{self.words}}}'


class Picture(NamedTuple):
    """A picture in rows from the top. A pixel is one byte (grey), three (RGB), or four with the last unused."""

    width: int
    height: int
    # Bytes per row, including padding.
    stride: int
    channels: int
    data: bytes


class Reading(NamedTuple):
    pages_total: int
    # The pages of the requested range, read lazily.
    pages: Iterable[Page]


@dataclass
class Counts:
    pages: int = 0
    characters: int = 0
    # Pages whose text was recognised, and scans whose text could not be.
    recognised: int = 0
    scans: int = 0


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def write(
    reading: Reading, directory: Path, report_page: Callable[[int], object], *, with_words: bool = False
) -> Counts:
    """Write the pages, and rename the file only when it is complete."""
    counts = Counts()
    partial_file = directory / f"{OUTPUT}.part"
    with partial_file.open("w", encoding="utf-8", newline="\n") as file:
        file.write('{"pages":[')
        for page in reading.pages:
            counts.characters += len(page.text)
            if counts.characters > MOST_CHARACTERS:
                problem = f"it has more than {MOST_CHARACTERS:,} characters of text by page {page.number}"
                raise too_large("This document", problem)
            if with_words:
                page.place_words()
            file.write(f"{',' if counts.pages else ''}\n{page.to_json()}")
            counts.pages += 1
            counts.recognised += page.recognition is not None
            counts.scans += page.is_unread
            report_page(page.number)
        file.write(f'\n],"pages_total":{reading.pages_total},"scans":{counts.scans},"version":{VERSION}}}\n')
    os.replace(partial_file, directory / OUTPUT)
    return counts
