"""Reads a document into words and their places."""

import ctypes
import math
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
        raise Unreadable(_why_not(error)) from error
    with document:
        pages = []
        for number in range(1, len(document) + 1):
            pages.append(_read_page(document[number - 1], number))
            progress(number, len(document))
    return Layout(tuple(pages), has_places=True)


def read_text(text: str) -> Layout:
    """Lay out the text like a typewriter, so that columns made with spaces stay columns."""
    pages = (_typeset(number, page) for number, page in enumerate(text.expandtabs().split("\f"), 1))
    return Layout(tuple(pages), has_places=False)


def _why_not(error: pypdfium2.PdfiumError) -> str:
    if "password" in str(error).lower():
        return "the PDF is encrypted. Save it without a password."
    return f"the file cannot be opened as a PDF: {error}"


def _read_page(page: pypdfium2.PdfPage, number: int) -> Page:
    width, height = page.get_size()
    words = list(_words_of(page))
    return Page(number, width, height, lines_of(number, words))


def _words_of(page: pypdfium2.PdfPage) -> Iterator[Word]:
    """Yield the words between spaces, each with the box around its characters."""
    text = ""
    boxes: list[Box] = []
    for character, box in _characters_of(page):
        if character.isspace() or (boxes and _jumps(boxes[-1], box)):
            if text:
                yield Word(text, Box.around(boxes))
            text, boxes = "", []
        if not character.isspace():
            text, boxes = text + character, [*boxes, box]
    if text:
        yield Word(text, Box.around(boxes))


def _jumps(before: Box, box: Box) -> bool:
    """Return whether a new line or column starts without a space."""
    return abs(box.middle - before.middle) > before.height / 2 or box.left - before.right > before.height


def _characters_of(page: pypdfium2.PdfPage) -> Iterator[tuple[str, Box]]:
    text_page = page.get_textpage()
    to_page, turned = _converter(page), math.radians(page.get_rotation())
    for index in range(text_page.count_chars()):
        character = chr(pdfium.FPDFText_GetUnicode(text_page, index)).translate(_HYPHENS)
        is_upright = math.cos(pdfium.FPDFText_GetCharAngle(text_page, index) + turned) > _UPRIGHT
        if character.isspace() or (is_upright and character.isprintable()):
            yield character, to_page(text_page.get_charbox(index, loose=True))


def _converter(page: pypdfium2.PdfPage) -> Callable[[tuple[float, float, float, float]], Box]:
    """Return a function that converts coordinates of the file to coordinates of the page as people see it."""
    width, height = (round(size * _STEPS_PER_POINT) for size in page.get_size())
    x, y = ctypes.c_int(), ctypes.c_int()

    def point(across: float, up: float) -> tuple[float, float]:
        pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, across, up, x, y)
        return x.value / _STEPS_PER_POINT, y.value / _STEPS_PER_POINT

    def convert(place: tuple[float, float, float, float]) -> Box:
        left, bottom, right, top = place
        (x1, y1), (x2, y2) = point(left, top), point(right, bottom)
        return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    return convert


def _typeset(number: int, text: str) -> Page:
    rows = text.splitlines()
    words = [word for row, line in enumerate(rows) for word in _typeset_line(row, line)]
    width = CHARACTER_WIDTH * max((len(row) for row in rows), default=1)
    return Page(number, width, LINE_HEIGHT * max(1, len(rows)), lines_of(number, words))


def _typeset_line(row: int, line: str) -> Iterator[Word]:
    top, column = row * LINE_HEIGHT, 0
    for text in line.split():
        column = line.index(text, column)
        left = column * CHARACTER_WIDTH
        column += len(text)
        yield Word(text, Box(left, top, column * CHARACTER_WIDTH, top + LINE_HEIGHT))
