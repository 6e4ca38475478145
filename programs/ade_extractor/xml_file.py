"""Reads XML files: e-invoices as readable pages, and others as the names and texts of their elements."""

import unicodedata
from collections.abc import Callable
from functools import cache
from math import ceil
from pathlib import Path
from xml.etree.ElementTree import Element

import pypdfium2

from ade_extractor import limits
from ade_extractor.pages import Page, Picture, Reading
from ade_extractor.trouble import Trouble, malformed, reading, too_large
from ade_understanding.einvoice import sheet
from ade_understanding.einvoice.model import Invoice
from ade_understanding.einvoice.parsing import MOST_BYTES, BadXml, all_texts, parse
from ade_understanding.einvoice.reading import of_root
from ade_understanding.einvoice.sheet import Sheet


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    sheets = _sheets(path)
    pages = [
        Page(each.number, each.text, sheet.WIDTH, sheet.HEIGHT, words=each.words_json())
        for each in sheets[max(first - 1, 0) : last]
    ]
    return Reading(len(sheets), pages)


def draw(path: Path, number: int, fit: Callable[[float, float], float]) -> Picture:
    sheets = _sheets(path)
    if not 1 <= number <= len(sheets):
        raise Trouble("no_such_page", f"There is no page {number}: the document has pages 1 to {len(sheets)}.")
    with limits.apart(limits.DRAWN_CPU_SECONDS), reading(f"Page {number}"):
        page = pypdfium2.PdfDocument(_as_pdf(sheets[number - 1]))[0]
        bitmap = page.render(scale=fit(sheet.WIDTH, sheet.HEIGHT), rev_byteorder=True)
        return Picture(bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels, bytes(bitmap.buffer))


@cache
def invoice_of(path: Path) -> Invoice | None:
    """Return the e-invoice in a file, or None if the file is other XML. Raises Trouble."""
    return of_root(_root(path))


@cache
def _sheets(path: Path) -> list[Sheet]:
    invoice = invoice_of(path)
    sheets = sheet.draw(invoice) if invoice else sheet.draw_texts(all_texts(_root(path)))
    if len(sheets) > limits.MOST_PAGES:
        raise too_large("This XML file", f"it fills {len(sheets):,} pages (limit: {limits.MOST_PAGES:,})")
    return sheets


@cache
def _root(path: Path) -> Element:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise too_large("This XML file", f"it has {size:,} bytes (limit: {MOST_BYTES:,})")
    try:
        return parse(path.read_bytes())
    except BadXml as error:
        raise malformed("This XML file", str(error), "Ask its sender for a correct file.") from error


def _as_pdf(page: Sheet) -> bytes:
    """Return a PDF of one page, for pdfium to draw."""
    lines = [
        b"BT /F1 %d Tf %.1f %.1f Td (%b) Tj ET" % (each.size, each.left, sheet.HEIGHT - each.top, _escaped(each.text))
        for each in page.texts
    ]
    content = b"\n".join(lines)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
        % (ceil(sheet.WIDTH), ceil(sheet.HEIGHT)),
        b"<</Length %d>>\nstream\n%b\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    file = b"%PDF-1.4\n"
    starts = []
    for number, each in enumerate(objects, 1):
        starts.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(file))
    return file + b"xref\n0 %d\n0000000000 65535 f \n%b%b" % (len(objects) + 1, table, end)


def _escaped(text: str) -> bytes:
    """Return a text in the encoding of the font. Letters that it lacks lose their accents."""
    characters = []
    for each in text:
        encoded = each.encode("cp1252", "ignore") or unicodedata.normalize("NFKD", each).encode("cp1252", "ignore")
        characters.append(encoded or b"?")
    return b"".join(characters).translate(_CONTROLS).replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")


# Control characters would end a text.
_CONTROLS = bytes(32 if code < 32 else code for code in range(256))
