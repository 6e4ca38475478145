"""Takes attached files out of PDFs, within limits of number and size."""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pypdfium2.raw as pdfium

from ade_extractor.pdf import open_document
from ade_understanding.einvoice.parsing import MOST_BYTES

# An invoice has one to three attachments.
MOST_ATTACHMENTS = 100
_LONGEST_NAME = 1000


def of_pdf(path: Path) -> Iterator[tuple[str, Callable[[], bytes | None]]]:
    """Yield the name of each attachment and a function that unpacks it; None for one that is too large or damaged."""
    document = open_document(path)
    for index in range(min(pdfium.FPDFDoc_GetAttachmentCount(document), MOST_ATTACHMENTS)):
        if attachment := pdfium.FPDFDoc_GetAttachment(document, index):
            yield _name(attachment), partial(_content, attachment)


def _name(attachment: pdfium.FPDF_ATTACHMENT) -> str:
    size = min(pdfium.FPDFAttachment_GetName(attachment, None, 0), _LONGEST_NAME)
    buffer = ctypes.create_string_buffer(_LONGEST_NAME)
    pdfium.FPDFAttachment_GetName(attachment, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), _LONGEST_NAME)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


def _content(attachment: pdfium.FPDF_ATTACHMENT) -> bytes | None:
    length = ctypes.c_ulong()
    if not pdfium.FPDFAttachment_GetFile(attachment, None, 0, length) or length.value > MOST_BYTES:
        return None
    buffer = ctypes.create_string_buffer(length.value)
    if not pdfium.FPDFAttachment_GetFile(attachment, buffer, length.value, length):
        return None
    return buffer.raw[: length.value]
