"""The pages of a document, as they are written."""

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
    """That the text of a page was recognised in its image, by what, and how sure it is of it; None without text."""

    engine: str
    confidence: float | None
    # There may be more on it: it was given up as too much.
    is_whole: bool


class Table(NamedTuple):
    rows: list[list[str]]
    # In shares of the page, from its top left corner; None where there are no places.
    box: Box | None = None


@dataclass(slots=True)
class Page:
    number: int
    text: str
    # In points, or pixels of an image. None where pages have no size.
    width: float | None = None
    height: float | None = None
    # JSON already: lists of a word and its box.
    words: str = "[]"
    # The same, where it takes longer than to read the page: asked while it is the one that is read.
    find_words: Callable[[], str] | None = None
    tables: list[Table] = field(default_factory=list)
    images: int = 0
    recognition: Recognition | None = None

    @property
    def is_unread(self) -> bool:
        """A scan that nobody could read. Only the pages of pdf and image files have sizes."""
        return bool(self.images) and self.width is not None and not (self.text.strip() or self.recognition)

    def place_words(self) -> None:
        if self.find_words is not None:
            self.words = self.find_words()

    def encoded(self) -> str:
        values = {
            "has_text": bool(self.text.strip()),
            "height": self.height,
            "images": self.images,
            "number": self.number,
            "ocr": self._recognition(),
            "tables": [{"box": table.box, "rows": table.rows} for table in self.tables],
            "text": self.text,
            "width": self.width,
        }
        # All in alphabetical order, "words" too.
        return f'{_encode(values)[:-1]},"words":{self.words}}}'

    def _recognition(self) -> dict[str, object] | None:
        if not self.recognition:
            return None
        engine, confidence, is_whole = self.recognition
        return {"confidence": confidence, "engine": engine, "whole": is_whole}


class Drawn(NamedTuple):
    """A picture in rows from the top: one byte for each pixel, or three of red, green and blue, or a fourth unused."""

    width: int
    height: int
    # From one row to the next.
    stride: int
    channels: int
    data: bytes


class Reading(NamedTuple):
    pages_total: int
    # Of the range that was asked for, each read when its turn comes.
    pages: Iterable[Page]


@dataclass
class Written:
    pages: int = 0
    characters: int = 0
    # Pages whose text was recognised, and scans that nobody could read.
    recognised: int = 0
    scans: int = 0


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def write(reading: Reading, directory: Path, told: Callable[[int], object], *, with_words: bool = False) -> Written:
    """Under its name only when it is whole."""
    written = Written()
    unfinished = directory / f"{OUTPUT}.part"
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write('{"pages":[')
        for page in reading.pages:
            written.characters += len(page.text)
            if written.characters > MOST_CHARACTERS:
                raise too_large(f"at most {MOST_CHARACTERS:,} characters of text", f"more by page {page.number}")
            if with_words:
                page.place_words()
            file.write(f"{',' if written.pages else ''}\n{page.encoded()}")
            written.pages += 1
            written.recognised += page.recognition is not None
            written.scans += page.is_unread
            told(page.number)
        file.write(f'\n],"pages_total":{reading.pages_total},"scans":{written.scans},"version":{VERSION}}}\n')
    os.replace(unfinished, directory / OUTPUT)
    return written
