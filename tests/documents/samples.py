"""Small files of each accepted type, and of some that are refused."""

import io
import struct
import zipfile
import zlib

PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\x01" * 40 + b"\xff\xd9"
TIFF = b"II*\0\x08\0\0\0\0\0\0\0\0\0"
HTML = b"<!DOCTYPE html>\n<html><head><title>T</title></head><body><p>Hello</p></body></html>\n"
CSV = b"date,amount,text\n2024-01-02,3.50,coffee\n2024-01-03,7.00,tea\n"
XML = b'<?xml version="1.0" encoding="UTF-8"?>\n<order><id>12</id></order>\n'
TXT = "Dear Ms Müller,\n\nthank you for your letter.\n".encode()
EML = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: Hello\r\nMIME-Version: 1.0\r\n\r\nHello\r\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def zipped(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else method)
    return file.getvalue()


def office(*parts):
    return zipped({"[Content_Types].xml": "<Types/>", "_rels/.rels": "<R/>"} | dict.fromkeys(parts, "<x/>"))


DOCX = office("word/document.xml", "word/styles.xml")
XLSX = office("xl/workbook.xml", "xl/worksheets/sheet1.xml")
ODS = zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>"})
ODT = zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<x/>"})


def chunk(kind, data):
    return struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data))


def png(*more):
    header = chunk(b"IHDR", struct.pack(">2L5B", 1, 1, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(more) + pixels + chunk(b"IEND", b"")


PNG = png()


def ole(*names, nested=()):
    """Return an OLE file whose directory has these streams at the top, and `nested` ones inside the first of them."""
    last = 0xFFFFFFFF

    def entry(name, kind, left=last, right=last, child=last):
        text = (name + "\0").encode("utf-16-le")
        links = struct.pack("<3L", left, right, child)
        return text.ljust(64, b"\0") + struct.pack("<HBB", len(text), kind, 1) + links.ljust(60, b"\0")

    rows = [entry("Root Entry", 5, child=1)]
    inside = len(names) + 1 if nested else last
    for number, name in enumerate(names, 1):
        right = number + 1 if number < len(names) else last
        rows.append(entry(name, 2, right=right, child=inside if number == 1 else last))
    rows += [entry(name, 2, right=len(rows) + n + 1) for n, name in enumerate(nested)]
    rows += [bytes(128)] * (-len(rows) % 4)
    sectors = len(rows) // 4
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6)
    head = (head + bytes(10) + struct.pack("<L", 1) + struct.pack("<L", 1)).ljust(76, b"\0")
    table = [0xFFFFFFFD, *range(2, sectors + 1), 0xFFFFFFFE]
    head += struct.pack("<109L", 0, *[last] * 108)
    return head + struct.pack("<128L", *table, *[last] * (128 - len(table))) + b"".join(rows)


XLS = ole("Workbook", "\5SummaryInformation")
SAMPLES = {
    "invoice.pdf": (PDF, "application/pdf"),
    "letter.docx": (DOCX, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    "sales.xlsx": (XLSX, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "old.xls": (XLS, "application/vnd.ms-excel"),
    "sales.ods": (ODS, "application/vnd.oasis.opendocument.spreadsheet"),
    "sales.csv": (CSV, "text/csv"),
    "page.html": (HTML, "text/html"),
    "invoice.xml": (XML, "application/xml"),
    "letter.txt": (TXT, "text/plain"),
    "mail.eml": (EML, "message/rfc822"),
    "scan.png": (PNG, "image/png"),
    "scan.jpg": (JPEG, "image/jpeg"),
    "scan.tiff": (TIFF, "image/tiff"),
}
