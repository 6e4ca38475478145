"""Takes the XML out of a PDF, for the truth of the benchmark."""

import ctypes
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium


def xml_inside(path: Path) -> bytes | None:
    """Return the first attachment of a PDF that is named like an XML file."""
    document = pypdfium2.PdfDocument(path)
    for index in range(pdfium.FPDFDoc_GetAttachmentCount(document)):
        attachment = pdfium.FPDFDoc_GetAttachment(document, index)
        size = pdfium.FPDFAttachment_GetName(attachment, None, 0)
        name = ctypes.create_string_buffer(size)
        pdfium.FPDFAttachment_GetName(attachment, ctypes.cast(name, ctypes.POINTER(ctypes.c_ushort)), size)
        if not name.raw.decode("utf-16-le").rstrip("\0").lower().endswith(".xml"):
            continue
        length = ctypes.c_ulong()
        pdfium.FPDFAttachment_GetFile(attachment, None, 0, length)
        data = ctypes.create_string_buffer(length.value)
        pdfium.FPDFAttachment_GetFile(attachment, data, length.value, length)
        return data.raw
    return None
