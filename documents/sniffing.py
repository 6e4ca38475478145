"""Detects the type of a file from its content, and checks that its name and its declared type agree."""

import codecs
import csv
import mimetypes
import re
from itertools import islice
from typing import IO

from ade_understanding.einvoice.parsing import root_name
from documents.containers import Archive, Content, TooLong, archive, streams

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
CSV = "text/csv"
HTML = "text/html"
XML = "application/xml"
TXT = "text/plain"
EML = "message/rfc822"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"

# The accepted types and their labels.
LABELS = {
    PDF: "a PDF",
    DOCX: "a Word document (docx)",
    XLSX: "an Excel workbook (xlsx)",
    XLS: "an old Excel workbook (xls)",
    ODS: "an OpenDocument spreadsheet (ods)",
    CSV: "a table in text (csv)",
    HTML: "an HTML page",
    XML: "an XML file",
    TXT: "plain text",
    EML: "an e-mail (eml)",
    PNG: "a PNG image",
    JPEG: "a JPEG image",
    TIFF: "a TIFF image",
}
TAKEN = "PDF, docx, xlsx, xls, ods, csv, html, xml, txt, eml, png, jpeg or tiff"
SUFFIXES = {
    **{".pdf": PDF, ".docx": DOCX, ".xlsx": XLSX, ".xls": XLS, ".ods": ODS, ".eml": EML, ".png": PNG},
    **{".csv": CSV, ".tsv": CSV, ".tab": CSV, ".html": HTML, ".htm": HTML, ".xhtml": HTML, ".xml": XML},
    **{".txt": TXT, ".text": TXT, ".log": TXT, ".md": TXT},
    **{".jpg": JPEG, ".jpeg": JPEG, ".jpe": JPEG, ".tif": TIFF, ".tiff": TIFF},
}
# Other suffixes that name a type. Python's table varies between versions; a single letter names nothing.
_FOREIGN = {suffix for suffix in mimetypes.MimeTypes().types_map[True] if len(suffix) > 2} | {
    *(".7z", ".apk", ".avif", ".bat", ".bz2", ".cmd", ".com", ".dll", ".doc", ".docm", ".dotx", ".exe", ".gif"),
    *(".gz", ".heic", ".hta", ".ics", ".jar", ".js", ".jse", ".json", ".lnk", ".mht", ".mhtml", ".mjs", ".msg"),
    *(".msi", ".odp", ".odt", ".pages", ".pps", ".ppt", ".pptm", ".pptx", ".ps1", ".py", ".rar", ".rtf", ".scr"),
    *(".sh", ".svg", ".svgz", ".tar", ".vbe", ".vbs", ".vcf", ".wasm", ".webp", ".wsf", ".xlsb", ".xlsm"),
    *(".xps", ".xz", ".yaml", ".yml", ".zip", ".zst"),
}
# Other declared types that count as equal.
_ALSO = {
    PDF: {"application/x-pdf", "application/acrobat"},
    DOCX: {"application/zip", "application/x-zip-compressed"},
    XLSX: {"application/zip", "application/x-zip-compressed"},
    ODS: {"application/zip", "application/x-zip-compressed", "application/x-vnd.oasis.opendocument.spreadsheet"},
    XLS: {
        "application/msexcel",
        "application/x-msexcel",
        "application/excel",
        "application/x-excel",
        "application/xls",
    },
    # Windows declares the program that opens the file.
    CSV: {"application/csv", "text/x-csv", "text/comma-separated-values", "text/tab-separated-values", XLS, TXT},
    HTML: {"application/xhtml+xml"},
    XML: {"text/xml"},
    TXT: {"text/markdown", "text/x-markdown", "text/x-log"},
    EML: {TXT},
    JPEG: {"image/jpg", "image/pjpeg"},
    PNG: {"image/x-png"},
    TIFF: {"image/x-tiff"},
}
_SAYS_NOTHING = {
    *("", "*/*", "application/octet-stream", "binary/octet-stream", "application/unknown", "application/x-unknown"),
    *("application/download", "application/x-download", "application/force-download"),
}
# How far into a file various readers look for their format.
_ENDS_BYTES = 4096
_PDF_STARTS_WITHIN = 1024
_OPEN_DOCUMENT = re.compile(rb"PK\x03\x04.{4}\0\0.{16}\x08\0(..)mimetype", re.DOTALL)
_MAIN_PARTS = {re.compile(r"word/document\d*\.xml$"): DOCX, re.compile(r"xl/workbook\d*\.xml$"): XLSX}
_TEXTS = (HTML, EML, CSV, TXT)
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CONTROL = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
_CONTROL_BYTES = re.compile(rb"[\0-\x08\x0b\x0e-\x1f\x7f]")
_SKIPPED = re.compile(r"(?:\s|<!--.*?-->)*", re.DOTALL)
_HTML_STARTS = re.compile(
    r"<(?:!doctype\s+html|(?:html|head|title|body|script|style|meta|link|base|table|div|p|h[1-6]|a|img|iframe|form|ul"
    r"|ol|span|br|font|center|b|i|object|embed)[\s>/])",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(?:!doctype\s+html|[a-z][a-z0-9]{0,20}[\s>/])", re.IGNORECASE)
_E_INVOICES = ("urn:oasis:names:specification:ubl:schema:xsd:", "CrossIndustry", "FatturaElettronica")
_MARKUP = re.compile(rb"<(?:!doctype\s+html|html|head|body|script|iframe|svg|object|embed)[\s>/]", re.IGNORECASE)


class Unknown(Exception):
    """The type is not accepted; the message says what the file seems to be."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Unsupported file type: {what}. Use {TAKEN}.")


class Ambiguous(Exception):
    """Different programs would read the file as different types."""

    def __init__(self, content_type: str, also: str) -> None:
        super().__init__(f"The file type is ambiguous: {LABELS[content_type]} that is also {also}.")


def sniff(file: IO[bytes], name: str = "") -> str:
    """Return the type of a seekable file. The name only decides between kinds of text.

    Reads only both ends and tables of contents, whatever the size. Raises Unknown and Ambiguous.
    """
    content = Content(file)
    try:
        zipped = archive(content)
        content_type = _detect_binary(content, zipped) or _detect_text(content, suffix_of(name))
    except TooLong as error:
        raise Unknown("an archive whose table of contents is too long") from error
    if also := _second_type(content, content_type, zipped):
        raise Ambiguous(content_type, also)
    return content_type


def problem(name: str, declared: str, content_type: str) -> str | None:
    """Return how the name or the declared type contradicts the content, or None if they agree or say nothing."""
    suffix = suffix_of(name)
    named = SUFFIXES.get(suffix)
    if named not in (content_type, None) or (named is None and suffix in _FOREIGN):
        expected = f" like {LABELS[named]}" if named else ""
        return f"The name of the file ends in {suffix}{expected}, but its content is {LABELS[content_type]}."
    declared_type = declared.partition(";")[0].strip().lower()
    if declared_type in {*_SAYS_NOTHING, content_type, *_ALSO.get(content_type, ())}:
        return None
    shown = declared_type[:80].encode("ascii", "backslashreplace").decode()
    return f"The file was sent as {shown!r}, but its content is {LABELS[content_type]}."


def suffix_of(name: str) -> str:
    """Return the suffix in lower case with its dot, or "" if there is none."""
    suffix = re.search(r"\.[a-z0-9]{1,10}$", name.lower().rstrip(". "))
    return suffix[0] if suffix else ""


def _detect_binary(content: Content, zipped: Archive | None) -> str | None:
    head = content.head
    if head[:_PDF_STARTS_WITHIN].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\3\4"):
        return _detect_office(content, zipped)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        names = streams(content)
        if "EncryptedPackage" in names:
            raise Unknown("an Office document with a password; save it without one")
        if "WordDocument" in names:
            raise Unknown("an old Word document (doc); save it as docx")
        if "PowerPoint Document" in names:
            raise Unknown("an old PowerPoint presentation")
        if names & {"Workbook", "Book"}:
            return XLS
        raise Unknown("an OLE file that is not an Excel workbook")
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    return TIFF if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")) else None


def _detect_office(content: Content, zipped: Archive | None) -> str:
    if zipped is None:
        raise Unknown("a zip archive that is damaged or cut off")
    if zipped.before_bytes or zipped.after.strip(b"\0\r\n\t "):
        raise Unknown("a zip archive with other data before or after it")
    if declared := _OPEN_DOCUMENT.match(content.head):
        mimetype = content.head[declared.end() + int.from_bytes(declared[1], "little") :].partition(b"PK")[0]
        if mimetype == ODS.encode():
            return ODS
        raise Unknown("an OpenDocument file that is not a spreadsheet")
    names = {name.lower() for name in zipped.names}
    if "[content_types].xml" not in names:
        raise Unknown("a zip archive")
    if any(name.endswith("vbaproject.bin") for name in names):
        raise Unknown("an Office document with macros")
    kinds = {kind for part, kind in _MAIN_PARTS.items() if any(part.match(name) for name in names)}
    if len(kinds) != 1:
        raise Unknown("an Office document that is neither docx nor xlsx")
    return kinds.pop()


def _second_type(content: Content, content_type: str, zipped: Archive | None) -> str | None:
    """Return what else the file is, or None. Such files are made to pass one reader and reach another."""
    if content_type in (DOCX, XLSX, ODS):
        zipped = None
    # An archive in the middle of a PDF is an attachment.
    if zipped and not (content_type == PDF and b"%%EOF" in zipped.after):
        return "a zip archive"
    is_text = content_type in _TEXTS
    if content_type != PDF and b"%PDF-" in content.head[:_PDF_STARTS_WITHIN]:
        # A text may mention PDF files; it only counts as one if it also has the end of a PDF.
        return "a PDF" if not is_text or b"startxref" in content.tail else None
    if is_text:
        return None
    if content_type == PDF:
        # After its first object, the text of a PDF may contain markup.
        return "an HTML page" if _MARKUP.search(content.head[:_PDF_STARTS_WITHIN].partition(b" obj")[0]) else None
    ends = content.head[:_ENDS_BYTES], content.tail[-_ENDS_BYTES:]
    return "an HTML page" if any(_MARKUP.search(end) for end in ends) else None


def _detect_text(content: Content, suffix: str) -> str:
    head = content.head
    marked = next((codec for bom, codec in _BOMS.items() if head.startswith(bom)), None)
    text: str | None
    try:
        text = codecs.getincrementaldecoder(marked or "utf-8")().decode(head, content.is_all_in_head)
    except UnicodeDecodeError:
        # In Latin-1 every byte is a character.
        text = None if marked else head.decode("latin-1")
    if text is None or _CONTROL.search(text) or (marked != "utf-16" and _CONTROL_BYTES.search(content.tail)):
        what = next((what for magic, what in _MAGIC.items() if head.startswith(magic)), "unknown data")
        raise Unknown(what)
    skipped = _SKIPPED.match(text)
    beginning = text[skipped.end() if skipped else 0 :][:2048]
    start = beginning.lower()
    is_xml = start.startswith("<?xml")
    if start.startswith(("<svg", "<!doctype svg")) or (is_xml and "<svg" in start and "<html" not in start):
        raise Unknown("an SVG image")
    # An e-invoice may lack the declaration.
    if (is_xml and "<html" not in start) or (start.startswith("<") and any(mark in beginning for mark in _E_INVOICES)):
        return _xml(text)
    for mark, what in (("{\\rtf", "an RTF document"), ("%!ps", "a PostScript document")):
        if start.startswith(mark):
            raise Unknown(what)
    named = SUFFIXES.get(suffix)
    is_html = "<html" in start if beginning.startswith("<?xml") else _HTML_STARTS.match(beginning)
    if is_html or (named == HTML and _TAG.search(text)):
        return HTML
    # The name may call any text a table or plain text.
    if named in (CSV, TXT):
        return named
    if _is_mail(text):
        return EML
    return CSV if _is_table(text) else TXT


def _xml(text: str) -> str:
    """Return the type of a file that starts as XML."""
    root = root_name(text)
    if not root:
        # Document types may define entities, which ADE's reader refuses.
        raise Unknown("an XML document with a document type, or whose first element does not show")
    if root.lower() == "svg":
        raise Unknown("an SVG image")
    return XML


_HEADER = re.compile(r"([!-9;-~]{1,76}):")
_HEADERS_OF_MAIL = {
    *("from", "to", "cc", "subject", "date", "message-id", "mime-version", "received", "return-path", "content-type"),
    *("delivered-to", "dkim-signature", "reply-to", "sender"),
}


def _is_mail(text: str) -> bool:
    """Return whether the text starts with headers, at least two of which are typical for e-mail."""
    lines = text.splitlines()
    if lines and lines[0].startswith("From "):
        del lines[0]
    names = set()
    for line in lines:
        if not line:
            break
        header = _HEADER.match(line)
        if header:
            names.add(header[1].lower())
        elif not (names and line[0] in " \t"):
            return False
    return len(names & _HEADERS_OF_MAIL) >= 2


_LINES = 50


def _is_table(text: str) -> bool:
    """Return whether the first rows have the same number of columns, and enough of them to be no coincidence."""
    # The last line may be cut off.
    lines = text.splitlines(keepends=True)[:-1] if len(text) > 4096 else text.splitlines(keepends=True)
    for delimiter in ",;\t|":
        try:
            rows = list(islice((row for row in csv.reader(lines, delimiter=delimiter) if row), _LINES))
        except csv.Error:
            continue
        widths = {len(row) for row in rows}
        if len(widths) == 1 and len(rows) >= 2 and (min(widths) >= 3 or (min(widths) == 2 and len(rows) >= 3)):
            return True
    return False


_MAGIC = {
    b"MZ": "a Windows program",
    b"\x7fELF": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x1f\x8b": "a gzip archive",
    b"PK": "an empty zip archive",
    b"GIF8": "a GIF image",
    b"RIFF": "a WebP image or a recording",
    b"BM": "a bitmap image",
    b"SQLite format 3\0": "a database",
}
