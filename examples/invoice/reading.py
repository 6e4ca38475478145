"""Reads a document into words and their places."""

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium
from layout import Box, Layout, Page, Word, lines_of

# Plain text is set in these sizes, like on a typewriter.
CHARACTER_WIDTH = 6.0
LINE_HEIGHT = 12.0
# pdfium converts places to whole numbers, so they are converted in hundredths of a point.
_STEPS_PER_POINT = 100
# The smallest cosine of a character's angle. Text turned sideways in a margin does not belong to a line.
_UPRIGHT = 0.99
# How pdfium encodes hyphens at the end of a line.
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\xad": "-"})

Progress = Callable[[int, int], None]


class Unreadable(Exception):
    """The file is not a PDF that can be opened. The message is for people."""


def read_pdf(path: Path, progress: Progress) -> Layout:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("the PDF is encrypted. Save it without a password.") from error
        raise Unreadable(f"the file cannot be opened as a PDF: {error}") from error
    with document:
        pages = []
        for number in range(1, len(document) + 1):
            page = document[number - 1]
            width, height = page.get_size()
            pages.append(Page(number, width, height, lines_of(number, list(_words_of(page)))))
            progress(number, len(document))
    return Layout(tuple(pages), has_places=True)


def read_text(text: str) -> Layout:
    """Lay out the text like a typewriter, so that columns made with spaces stay columns."""
    pages = []
    for number, page in enumerate(text.expandtabs().split("\f"), 1):
        rows = page.splitlines()
        words = []
        for row, line in enumerate(rows):
            for match in re.finditer(r"\S+", line):
                left, right = match.start() * CHARACTER_WIDTH, match.end() * CHARACTER_WIDTH
                words.append(Word(match[0], Box(left, row * LINE_HEIGHT, right, (row + 1) * LINE_HEIGHT)))
        width = CHARACTER_WIDTH * max((len(row) for row in rows), default=1)
        pages.append(Page(number, width, LINE_HEIGHT * max(1, len(rows)), lines_of(number, words)))
    return Layout(tuple(pages), has_places=False)


def _words_of(page: pypdfium2.PdfPage) -> Iterator[Word]:
    """Yield the words, each with the box around its characters."""
    text = ""
    boxes: list[Box] = []
    for character, box in _characters_of(page):
        # A new line or column may start without a space.
        jumps = boxes and (
            abs(box.middle - boxes[-1].middle) > boxes[-1].height / 2 or box.left - boxes[-1].right > boxes[-1].height
        )
        if character.isspace() or jumps:
            if text:
                yield Word(text, Box.around(boxes))
            text, boxes = "", []
        if not character.isspace():
            text, boxes = text + character, [*boxes, box]
    if text:
        yield Word(text, Box.around(boxes))


def _characters_of(page: pypdfium2.PdfPage) -> Iterator[tuple[str, Box]]:
    """Yield the characters of lines, with their places on the page as people see it."""
    text_page = page.get_textpage()
    width, height = (round(size * _STEPS_PER_POINT) for size in page.get_size())
    turn = math.radians(page.get_rotation())
    x, y = ctypes.c_int(), ctypes.c_int()

    def point(across: float, up: float) -> tuple[float, float]:
        pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, across, up, x, y)
        return x.value / _STEPS_PER_POINT, y.value / _STEPS_PER_POINT

    for index in range(text_page.count_chars()):
        character = chr(pdfium.FPDFText_GetUnicode(text_page, index)).translate(_HYPHENS)
        is_upright = math.cos(pdfium.FPDFText_GetCharAngle(text_page, index) + turn) > _UPRIGHT
        if character.isspace() or (is_upright and character.isprintable()):
            left, bottom, right, top = text_page.get_charbox(index, loose=True)
            (x1, y1), (x2, y2) = point(left, top), point(right, bottom)
            yield character, Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
