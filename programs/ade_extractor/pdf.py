"""Reads PDF files with pdfium: text, and words with their places. Forms, scripts and annotations are not loaded."""

import ctypes
import mmap
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import repeat
from json.encoder import encode_basestring
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from ade_extractor import limits, ocr, rulings
from ade_extractor.pages import Box, Page, Picture, Reading
from ade_extractor.text import clean
from ade_extractor.trouble import Trouble, malformed, reading, too_large

_HEADER_WITHIN = 1024
_OTHER_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*")
# How pdfium marks a hyphen at the end of a line: the first code occurs in text, the second as a single character.
_LINES = dict.fromkeys(map(ord, "\ufffe\x02"), "-\n")
_HYPHENS = dict.fromkeys(_LINES, "-")
_WORD = re.compile("[^\\s\ufffe\x02]+[\ufffe\x02]?|[\ufffe\x02]")
# Four decimals; a lookup is faster than rounding and formatting.
_SHARES = [repr(each / 10_000) for each in range(10_001)]
# Limits the count of images. A scan has a few, and the exact number of thousands does not matter.
MOST_OBJECTS = 10_000
MOST_NESTED_FORMS = 3
# Resolution for recognition, which gives small print letters of 15 pixels.
DOTS_PER_INCH = 200
POINTS_PER_INCH = 72

# Called for each word. Without argument checks and without releasing the GIL, a call takes a third of the time.
_loose_box = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(pdfium.FPDFText_GetLooseCharBox, ctypes.c_void_p).value or 0
)


class Columns(NamedTuple):
    """The coordinates of boxes in points, upwards from any origin."""

    left: list[float]
    top: list[float]
    right: list[float]
    bottom: list[float]


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    document = open_document(path)
    total = len(document)

    def read_pages() -> Iterator[Page]:
        for number in range(first, min(last, total) + 1):
            limits.allow_cpu(number - first)
            try:
                page = document[number - 1]
            except pypdfium2.PdfiumError as error:
                raise malformed("This PDF", f"page {number} cannot be loaded") from error
            text_page = page.get_textpage()
            yield _read(page, text_page, number)
            text_page.close()
            page.close()

    return Reading(total, read_pages())


def draw(path: Path, number: int, fit: Callable[[float, float], float]) -> Picture:
    """Draw one page with its form fields and annotations, scaled by what `fit` returns for its size in points."""
    document = open_document(path)
    if not 1 <= number <= len(document):
        raise Trouble("no_such_page", f"There is no page {number}: the document has pages 1 to {len(document)}.")
    with limits.apart(limits.DRAWN_CPU_SECONDS), reading(f"Page {number}"):
        page = document[number - 1]
        width, height = page.get_size()
        if not (isfinite(width) and isfinite(height) and width > 0 and height > 0):
            raise malformed(f"Page {number}", f"its size is {width} by {height} points")
        # Form fields are drawn as they are stored. Initialising forms could run scripts.
        bitmap = page.render(scale=fit(width, height), rev_byteorder=True, may_draw_forms=False)
        return Picture(bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels, bytes(bitmap.buffer))


@cache
def open_document(path: Path) -> pypdfium2.PdfDocument:
    """Open a document and check its number of pages.

    The result is cached for processes that read several ranges, because opening a file and its fonts takes long.
    """
    with path.open("rb") as file:
        head = file.read(_HEADER_WITHIN)
    if b"%PDF-" not in head or head.startswith(_OTHER_STARTS):
        raise malformed("This PDF", "its header is missing", "Upload it with its own extension.")
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            message = "This PDF is encrypted. Save it without its password and upload it again."
            raise Trouble("encrypted", message) from error
        raise malformed("This PDF", f"it cannot be opened ({error})") from error
    if not pdfium.FPDF_DocumentHasValidCrossReferenceTable(document):
        # pdfium repairs a file whose end is missing, but then pages lack their ends.
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            is_cut_off = data.rfind(b"%%EOF") < data.rfind(b" obj")
        if is_cut_off:
            raise malformed("This PDF", "it is cut off", "Upload it again.")
    total = len(document)
    if total > limits.MOST_PAGES:
        raise too_large("This PDF", f"it has {total:,} pages (limit: {limits.MOST_PAGES:,})")
    if total == 0:
        raise malformed("This PDF", "it has no pages")
    last = pdfium.FPDF_LoadPage(document, total - 1)
    if not last:
        raise malformed("This PDF", f"it declares {total:,} pages, but the last one is missing")
    pdfium.FPDF_ClosePage(last)
    return document


def _read(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage, number: int) -> Page:
    width, height = page.get_size()
    if not (isfinite(width) and isfinite(height)):
        raise malformed(f"Page {number}", f"its size is {width} by {height} points")
    count = text_page.count_chars()
    if count > limits.MOST_CHARACTERS:
        raise too_large("This PDF", f"a page has {count:,} characters (limit: {limits.MOST_CHARACTERS:,})")
    text = text_page.get_text_range() if count else ""
    if len(text) != count:
        # Use one code point per pdfium character, so that indexes match.
        codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
        text = "".join(chr(code) if code <= 0x10FFFF else "\ufffd" for code in codes)
    result = Page(
        number,
        clean(text.translate(_LINES)),
        round(width, 2),
        round(height, 2),
        find_words=partial(_words, page, text_page, text, number),
        find_rulings=partial(_rulings, page),
        images=_count_images(page),
    )
    if not result.is_unread or not ocr.engine():
        return result
    scale = ocr.scale_for(width, height, DOTS_PER_INCH / POINTS_PER_INCH)
    with limits.apart(limits.DRAWN_CPU_SECONDS), reading(f"Page {number}"):
        bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False, draw_annots=False)
        picture = ocr.GreyPicture(bitmap.width, bitmap.height, bitmap.stride, bytes(bitmap.buffer))
        bitmap.close()
    return ocr.read_picture(picture).apply_to(result)


def _words(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage, text: str, number: int) -> str:
    spans = [match.span() for match in _WORD.finditer(text)]
    if not spans:
        return "[]"
    if len(spans) > limits.MOST_WORDS_PER_PAGE:
        raise too_large(f"Page {number}", f"it has {len(spans):,} words (limit: {limits.MOST_WORDS_PER_PAGE:,})")
    texts = clean("\n".join([text[start:end] for start, end in spans]).translate(_HYPHENS))
    # Boxes around the first and last characters of the words. Their height is the font's, so it covers the rest.
    start = _columns(text_page, [start for start, _ in spans])
    end = _columns(text_page, [end - 1 for _, end in spans])
    left = [a if a < b else b for a, b in zip(start.left, end.left, strict=True)]
    top = [a if a > b else b for a, b in zip(start.top, end.top, strict=True)]
    right = [a if a > b else b for a, b in zip(start.right, end.right, strict=True)]
    bottom = [a if a < b else b for a, b in zip(start.bottom, end.bottom, strict=True)]
    shares = _as_seen(page, Columns(left, top, right, bottom))
    return "[[" + "],[".join(map(",".join, zip(map(encode_basestring, texts.split("\n")), *shares, strict=True))) + "]]"


def _rulings(page: pypdfium2.PdfPage) -> list[Box]:
    """Return the ruling lines, as fractions of the page."""
    found = rulings.find(page)
    if not found:
        return []
    shares = _as_seen(page, Columns(*(list(edges) for edges in zip(*found, strict=True))))
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in zip(*shares, strict=True)]


def _as_seen(page: pypdfium2.PdfPage, boxes: Columns) -> list[list[str]]:
    """Return left, top, right and bottom of the boxes as people see the page, which may be rotated."""
    area = pdfium.FS_RECTF()
    pdfium.FPDF_GetPageBoundingBox(page, area)
    across, up = (area.left, area.right), (area.bottom, area.top)
    leftwards, downwards = across[::-1], up[::-1]
    left, top, right, bottom = boxes
    sides = {
        0: ((left, across), (top, downwards), (right, across), (bottom, downwards)),
        90: ((bottom, up), (left, across), (top, up), (right, across)),
        180: ((right, leftwards), (bottom, up), (left, leftwards), (top, up)),
        270: ((top, downwards), (right, leftwards), (bottom, downwards), (left, leftwards)),
    }[page.get_rotation()]
    return [_shares(values, *ends) for values, ends in sides]


def _columns(text_page: pypdfium2.PdfTextPage, indexes: list[int]) -> Columns:
    boxes = (pdfium.FS_RECTF * len(indexes))()
    size, at = ctypes.sizeof(pdfium.FS_RECTF), ctypes.addressof(boxes)
    handle = ctypes.cast(text_page.raw, ctypes.c_void_p).value
    sum(map(_loose_box, repeat(handle), indexes, range(at, at + size * len(indexes), size)))
    values: list[float] = memoryview(bytes(boxes)).cast("f").tolist()  # type: ignore[assignment]  # says int
    return Columns(values[0::4], values[1::4], values[2::4], values[3::4])


def _shares(values: list[float], zero: float, one: float) -> list[str]:
    """Return coordinates as fractions of the way between the sides of the page."""
    if zero == one or not isfinite(one - zero):
        return [_SHARES[0]] * len(values)
    low, high = min(zero, one), max(zero, one)
    if not (low <= min(values) and max(values) <= high and isfinite(sum(values))):
        values = [(high if value > high else value) if value > low else low for value in values]
    scale = 10_000 / (one - zero)
    offset = 0.5 - zero * scale
    return [_SHARES[int(value * scale + offset)] for value in values]


def _count_images(page: pypdfium2.PdfPage) -> int:
    count, budget = 0, MOST_OBJECTS
    groups: list[tuple[Any, int, Any, Any]] = [(page, 0, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject)]
    while groups:
        group, depth, count_objects, get_object = groups.pop()
        for index in range(min(count_objects(group), budget)):
            budget -= 1
            each = get_object(group, index)
            kind = pdfium.FPDFPageObj_GetType(each)
            count += kind == pdfium.FPDF_PAGEOBJ_IMAGE
            if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MOST_NESTED_FORMS:
                groups.append((each, depth + 1, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject))
    return count
