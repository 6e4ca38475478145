"""Edits PDFs for the benchmark: replaces a text of a page, or the attached XML."""

import ctypes
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

_FONT = b"Helvetica"


def text_of(path: Path) -> str:
    document = pypdfium2.PdfDocument(path)
    return "\n".join(page.get_textpage().get_text_range() for page in document)


def replace_xml(path: Path, target: Path, data: bytes) -> None:
    """Write a copy whose first attached XML file has this content."""
    document = pypdfium2.PdfDocument(path)
    for index in range(pdfium.FPDFDoc_GetAttachmentCount(document)):
        attachment = pdfium.FPDFDoc_GetAttachment(document, index)
        size = pdfium.FPDFAttachment_GetName(attachment, None, 0)
        name = ctypes.create_string_buffer(size)
        pdfium.FPDFAttachment_GetName(attachment, ctypes.cast(name, ctypes.POINTER(ctypes.c_ushort)), size)
        if name.raw.decode("utf-16-le").rstrip("\0").lower().endswith(".xml"):
            pdfium.FPDFAttachment_SetFile(attachment, document, data, len(data))
            document.save(target)
            return
    raise ValueError(f"{path} has no XML file inside.")


def replace_text(path: Path, target: Path, patterns: Sequence[str], new: Callable[[str], str]) -> bool:
    """Write a copy in which the first text that matches is another one, and return whether there is such a text.

    The pieces of text that show it are removed, and drawn again in Helvetica with the other text.
    """
    document = pypdfium2.PdfDocument(path)
    for pattern in patterns:
        for page in document:
            text_page = page.get_textpage()
            text = text_page.get_text_range()
            match = re.search(pattern, text, re.IGNORECASE)
            if match and len(text) == text_page.count_chars():
                if not _replace(document, page, text_page, match, new(match[0])):
                    return False
                document.save(target)
                return new(match[0]) in text_of(target)
    return False


def _replace(
    document: pypdfium2.PdfDocument,
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    match: re.Match[str],
    new: str,
) -> bool:
    shown = match[0]
    indexes = (index for index in range(match.start(), match.end()) if not match.string[index].isspace())
    boxes = [text_page.get_charbox(index) for index in indexes]
    pieces = [
        piece
        for piece in page.get_objects([pdfium.FPDF_PAGEOBJ_TEXT], max_depth=1)
        if any(_overlap(piece.get_bounds(), box) for box in boxes)
    ]
    if not pieces:
        return False
    whole = "".join(_text_of(piece, text_page) for piece in pieces)
    replaced = whole.replace(shown, new, 1) if shown in whole else new
    left = min(piece.get_bounds()[0] for piece in pieces)
    # The base line of the text.
    bottom = pieces[0].get_matrix().f
    for piece in pieces:
        page.remove_obj(piece)
    _draw(document, page, replaced, left, bottom, max(box[3] - box[1] for box in boxes))
    page.gen_content()
    return True


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    middle_x, middle_y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return one[0] <= middle_x <= one[2] and one[1] <= middle_y <= one[3]


def _text_of(piece: pypdfium2.PdfObject, text_page: pypdfium2.PdfTextPage) -> str:
    size = pdfium.FPDFTextObj_GetText(piece, text_page, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDFTextObj_GetText(piece, text_page, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le").rstrip("\0")


def _draw(
    document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, text: str, left: float, bottom: float, height: float
) -> None:
    piece = pdfium.FPDFPageObj_NewTextObj(document, _FONT, max(height, 6.0))
    encoded = f"{text}\0".encode("utf-16-le")
    pdfium.FPDFText_SetText(piece, ctypes.cast(ctypes.create_string_buffer(encoded), ctypes.POINTER(ctypes.c_ushort)))
    pdfium.FPDFPageObj_Transform(piece, 1, 0, 0, 1, left, bottom)
    pdfium.FPDFPage_InsertObject(page, piece)
