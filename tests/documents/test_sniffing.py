import io
import random
import struct
import time
from contextlib import suppress

import pytest
from django.conf import settings

from documents.sniffing import LABELS, SUFFIXES, Ambiguous, Unknown, problem, sniff, suffix_of
from tests import effort
from tests.documents import samples
from tests.documents.samples import CSV, DOCX, EML, HTML, JPEG, ODT, PDF, PNG, SAMPLES, SVG, TIFF, TXT, XLSX
from tests.documents.samples import XLS as OLD_XLS

pytestmark = pytest.mark.once

ZIP = samples.zipped({"a.txt": "hello"})


def type_of(data, name=""):
    return sniff(io.BytesIO(data), name)


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_is_known_by_its_content(name):
    data, expected = SAMPLES[name]

    assert type_of(data, name) == expected
    assert problem(name, expected, expected) is None


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {"page.html"}))
def test_each_kind_is_known_without_a_name(name):
    data, expected = SAMPLES[name]

    assert type_of(data) == expected
    assert problem("scan of Monday", "", expected) is None


def test_what_is_taken_has_a_label_and_a_suffix():
    assert set(SUFFIXES.values()) == set(LABELS) == {kind for _, kind in SAMPLES.values()}


@pytest.mark.parametrize(
    "path", sorted((settings.BASE_DIR / "examples/documents").iterdir()), ids=lambda path: path.name
)
def test_the_examples_are_taken(path):
    with path.open("rb") as file:
        assert problem(path.name, "", sniff(file, path.name)) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\n\n" + PDF, "application/pdf"),
        (b"\xef\xbb\xbf" + PDF, "application/pdf"),
        (b"MM\0*" + bytes(20), "image/tiff"),
        (b"II+\0" + bytes(20), "image/tiff"),
        (
            samples.office("word/document2.xml"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (samples.ole("Book"), "application/vnd.ms-excel"),
        (samples.ole("A", "B", "C", "D", "E", "Workbook"), "application/vnd.ms-excel"),
        # A workbook with an embedded Word document.
        (samples.ole("Workbook", nested=["WordDocument"]), "application/vnd.ms-excel"),
        (b"<html>\n", "text/html"),
        (b"  \n<!-- a comment -->\n<HTML lang=de>", "text/html"),
        (b"<p>Hello</p>", "text/html"),
        (b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"></html>', "text/html"),
        ("\ufeff<html></html>".encode("utf-16-le"), "text/html"),
        (b"<?xml version='1.0'?><Invoice/>", "application/xml"),
        (b'<?xml version="1.0"?>' + b"<!-- licence -->" * 300 + b"<order></order>", "application/xml"),
        ('\ufeff<?xml version="1.0" encoding="utf-16"?><a></a>'.encode("utf-16-le"), "application/xml"),
        (b'<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"/>', "application/xml"),
        ("\ufeffHello Ä".encode(), "text/plain"),
        ("\ufeffHello Ä".encode("utf-16-be"), "text/plain"),
        ("Grüße".encode("latin-1"), "text/plain"),
        ("“Grüße”".encode("cp1252"), "text/plain"),
        (b"   \n", "text/plain"),
        (b"if a < b and b > c: print()", "text/plain"),
        (b"a;b;c\r\n1;2;3\r\n", "text/csv"),
        (b"a\tb\n1\t2\n3\t4\n", "text/csv"),
        (b'name,text\n1,"two\nlines, here"\n2,b\n', "text/csv"),
        (b"Dear Sir, hello\nbest, Olga\n", "text/plain"),
        (b"a,b,c\n1,2\n3,4,5\n", "text/plain"),
        (b"From: somebody\n\nhello", "text/plain"),
        (b"From olga Mon Jan 1\nFrom: a\nTo: b\n\nhello", "message/rfc822"),
        (b"Received: by x\n\tfor y\nSubject: =?utf-8?q?a?=\nX-A:b\n\n", "message/rfc822"),
    ],
)
def test_kinds_without_a_name(data, expected):
    assert type_of(data) == expected


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("list.csv", b"only one column\nand another row\n", "text/csv"),
        ("table.txt", CSV, "text/plain"),
        ("mail.txt", EML, "text/plain"),
        ("page.html", b"Hello <b>you</b>", "text/html"),
        ("page.txt", HTML, "text/html"),
        ("page.csv", HTML, "text/html"),
        ("page.eml", HTML, "text/html"),
        ("page.html", TXT, "text/plain"),
        ("mail.eml", TXT, "text/plain"),
        ("invoice.pdf", TXT, "text/plain"),
        ("letter.txt", PDF, "application/pdf"),
    ],
)
def test_the_name_decides_among_kinds_of_text_only(name, data, expected):
    assert type_of(data, name) == expected


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"MZ\x90\0" + bytes(100), "a Windows program"),
        (b"\x7fELF\2\1\1" + bytes(100), "a program"),
        (b"Rar!\x1a\7\0" + bytes(10), "a RAR archive"),
        (b"\x1f\x8b\x08\0" + bytes(10), "a gzip archive"),
        (b"GIF89a\1\0\1\0", "a GIF image"),
        (b"PK\5\6" + bytes(18), "an empty zip archive"),
        (ZIP, "a zip archive"),
        (ODT, "an OpenDocument file that is not a spreadsheet"),
        (samples.office("ppt/presentation.xml"), "neither docx nor xlsx"),
        (samples.office("word/document.xml", "xl/workbook.xml"), "neither docx nor xlsx"),
        (samples.office("word/document.xml", "word/vbaProject.bin"), "an Office document with macros"),
        (samples.office("xl/workbook.xml", "xl/vbaProject.bin"), "an Office document with macros"),
        (samples.zipped({"META-INF/MANIFEST.MF": "", "A.class": ""}), "a zip archive"),
        (samples.zipped({"word/document.xml": ""}), "a zip archive"),
        (DOCX[:-30], "damaged or cut off"),
        (DOCX[: len(DOCX) // 2], "damaged or cut off"),
        (DOCX + b"<html>", "other data before or after it"),
        (b"PK\3\4" + DOCX, "other data before or after it"),
        (samples.ole("WordDocument"), "an old Word document (doc)"),
        (samples.ole("EncryptedPackage", "EncryptionInfo"), "with a password"),
        (samples.ole("PowerPoint Document"), "an old PowerPoint presentation"),
        (samples.ole("__properties_version1.0"), "an OLE file that is not an Excel workbook"),
        (OLD_XLS[:100], "an OLE file that is not an Excel workbook"),
        (OLD_XLS[:520], "an OLE file that is not an Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 2000, "an OLE file that is not an Excel workbook"),
        (SVG, "an SVG image"),
        (b'<?xml version="1.0"?>\n<!-- x --><svg></svg>', "an SVG image"),
        (b'<?xml version="1.0"?>' + b"<!-- licence -->" * 300 + b"<svg></svg>", "an SVG image"),
        (b'<?xml version="1.0"?><x:svg xmlns:x="http://www.w3.org/2000/svg"></x:svg>', "an SVG image"),
        (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "an XML document with a document type"),
        (b'<?xml version="1.0"?><!-- never ends', "whose first element does not show"),
        (rb"{\rtf1\ansi hello}", "an RTF document"),
        (b"%!PS-Adobe-3.0\n", "a PostScript document"),
        (b"\x89PNG\r\n\x1a\n" + b"nonsense" * 9, "unknown data"),
        (b"text\0text", "unknown data"),
        (b"text \x1b[31m red", "unknown data"),
        (TXT * 5000 + b"\0" * 10, "unknown data"),
        (b"\xff\xfe\0\0H\0\0\0", "unknown data"),
        (b"\xff\xfeH", "unknown data"),
        (b"H\0e\0l\0l\0o\0", "unknown data"),
        (b"", ""),
    ],
)
def test_other_content_is_unknown(data, found):
    if not data:
        # The intake refuses empty files earlier, with a better message.
        assert type_of(data) == "text/plain"
        return
    with pytest.raises(Unknown) as refused:
        type_of(data)

    assert str(refused.value).startswith("Unsupported file type: ")
    assert str(refused.value).endswith(" Use PDF, docx, xlsx, xls, ods, csv, html, xml, txt, eml, png, jpeg or tiff.")
    assert found in str(refused.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PDF + ZIP, "a PDF that is also a zip archive"),
        (PDF + DOCX, "a PDF that is also a zip archive"),
        (PDF + samples.zipped({"A.class": ""}) + b"trailing", "a PDF that is also a zip archive"),
        (PNG + ZIP, "a PNG image that is also a zip archive"),
        (JPEG + ZIP, "a JPEG image that is also a zip archive"),
        (TIFF + ZIP, "a TIFF image that is also a zip archive"),
        (HTML + ZIP, ""),
        (OLD_XLS + ZIP, "an old Excel workbook (xls) that is also a zip archive"),
        (PNG + HTML, "a PNG image that is also an HTML page"),
        (
            samples.png(samples.chunk(b"tEXt", b"Comment\0<script>alert(1)</script>")),
            "PNG image that is also an HTML page",
        ),
        (
            JPEG[:20] + b"\xff\xfe\0\x20<html><script>alert(1)</script>" + JPEG[20:],
            "JPEG image that is also an HTML page",
        ),
        (TIFF + b"<svg onload=alert(1)>", "a TIFF image that is also an HTML page"),
        (b"%PDF-1.4\n<html><script>alert(1)</script>" + PDF[9:], "a PDF that is also an HTML page"),
        (JPEG + b"%PDF-1.4", "a JPEG image that is also a PDF"),
        (HTML + PDF, "an HTML page that is also a PDF"),
        (TXT + PDF, "plain text that is also a PDF"),
        (samples.zipped({"a": b"%PDF-1.4"}, 0), ""),
        (
            samples.zipped({"[Content_Types].xml": b"%PDF-1.4 endobj", "word/document.xml": b""}, 0),
            "that is also a PDF",
        ),
    ],
)
def test_what_is_two_things_is_refused(data, message):
    with pytest.raises((Ambiguous, Unknown)) as refused:
        type_of(data)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b"How PDF files begin: with %PDF-1.4, says the standard.",
        b"How pages begin: with <html>, or with <script>.",
        # A PDF with an attachment, and one that mentions HTML in its title.
        PDF[:-7] + b"9 0 obj\nstream\n" + ZIP + b"endstream\n%%EOF\n",
        PDF[:-7] + b"9 0 obj << /Title (<script> for all) >>\n%%EOF\n",
    ],
)
def test_what_only_talks_of_another_thing_is_one_thing(data):
    assert type_of(data) in ("text/plain", "application/pdf")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("invoice.pdf", XLSX, "ends in .pdf like a PDF, but its content is an Excel workbook (xlsx)."),
        ("page.html", PDF, "ends in .html like an HTML page, but its content is a PDF."),
        ("invoice.pdf.html", PDF, "ends in .html like an HTML page, but its content is a PDF."),
        ("INVOICE.PDF", PNG, "ends in .pdf like a PDF, but its content is a PNG image."),
        ("letter.docx", XLSX, "ends in .docx like a Word document (docx), but"),
        ("page.txt", HTML, "ends in .txt like plain text, but its content is an HTML page."),
        ("letter.html", TXT, "ends in .html like an HTML page, but its content is plain text."),
        ("letter.eml", TXT, "ends in .eml like an e-mail (eml), but its content is plain text."),
        ("scan.png", JPEG, "ends in .png like a PNG image, but its content is a JPEG image."),
        ("invoice.exe", PDF, "The name of the file ends in .exe, but its content is a PDF."),
        ("invoice.pdf.", PNG, "The name of the file ends in .pdf like a PDF, but"),
        ("macro.xlsm", XLSX, "The name of the file ends in .xlsm, but its content is "),
        ("image.svg", TXT, "The name of the file ends in .svg, but its content is "),
        ("run.js", TXT, "The name of the file ends in .js, but its content is "),
    ],
)
def test_a_name_that_says_otherwise(name, data, message):
    assert message in problem(name, "", type_of(data, name))


@pytest.mark.parametrize(
    "name", ["invoice", "", ".", "report.final", "v1.2", "archive 2024.01", "letter to Mr.T", "ünïcode.ﬁ", "a" * 300]
)
def test_a_name_that_says_nothing(name):
    assert problem(name, "", "application/pdf") is None


@pytest.mark.parametrize(
    ("declared", "data", "is_so"),
    [
        ("application/pdf", PDF, True),
        ("Application/PDF; x=y", PDF, True),
        ("application/octet-stream", PDF, True),
        ("", PDF, True),
        ("  ", PDF, True),
        ("*/*", PDF, True),
        ("text/plain; charset=utf-8", CSV, True),
        ("application/vnd.ms-excel", CSV, True),
        ("application/zip", DOCX, True),
        ("image/jpg", JPEG, True),
        ("text/html", PDF, False),
        ("image/png", PDF, False),
        ("text/plain", HTML, False),
        ("application/zip", PDF, False),
        ("image/svg+xml", PNG, False),
        ("nonsense", PDF, False),
        ("application/vnd.ms-excel", XLSX, False),
        ("text/html\r\nX-A: b", PDF, False),
        ("x" * 100_000, PDF, False),
    ],
)
def test_what_the_sender_says(declared, data, is_so):
    found = problem("scan", declared, type_of(data))

    assert (found is None) == is_so
    assert found is None or (len(found) < 300 and found.isprintable())


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.PDF", ".pdf"),
        ("a.pdf. ", ".pdf"),
        ("a.b.c1", ".c1"),
        ("a", ""),
        (".pdf", ".pdf"),
        ("a.b c", ""),
        ("a.ä", ""),
    ],
)
def test_suffixes(name, suffix):
    assert suffix_of(name) == suffix


def test_a_table_of_contents_that_is_too_long_is_not_read():
    entries = b"PK\1\2" + bytes(42)
    table = entries * 100_000
    data = b"PK\3\4" + bytes(26) + table
    data += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, len(table), 30, 0)

    with pytest.raises(Unknown, match="table of contents is too long"):
        type_of(data)


def test_an_archive_with_large_numbers_is_read_as_others_are():
    # ZIP64, which other readers prefer to the usual directory.
    start = DOCX.rfind(b"PK\5\6")
    _, _, _, count, _, length, offset, _ = struct.unpack("<4s4H2LH", DOCX[start:])
    large = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset)
    large += struct.pack("<4sLQL", b"PK\6\7", 0, start, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)

    assert type_of(DOCX[:start] + large + end) == SAMPLES["letter.docx"][1]


class Counted(io.BytesIO):
    read_bytes = 0

    def read(self, size=-1):
        data = super().read(size)
        self.read_bytes += len(data)
        return data


@pytest.mark.parametrize("data", [PDF, DOCX, TXT, PNG], ids=["pdf", "docx", "txt", "png"])
def test_of_a_long_file_little_is_read(data):
    file = Counted(data[:20] + b"x" * 5_000_000 + data)

    with suppress(Unknown, Ambiguous):
        sniff(file)

    assert file.read_bytes < 1_000_000


@pytest.mark.parametrize(
    "data",
    [
        b"PK\5\6" * 30_000,
        b"<!--" * 30_000,
        b"<!-- -->" * 20_000,
        b" " * 100_000,
        b"," * 100_000,
        b'"' * 65_000,
        b"a: b\n" * 20_000,
        b"From: " + b"a" * 100_000,
        b"<" * 100_000,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(22) + b"\x09\0" + bytes(100_000),
        b"PK\3\4" + b"PK\1\2" * 30_000,
    ],
    ids=lambda data: repr(data[:8]),
)
def test_nothing_takes_long(data):
    started = time.process_time()

    with suppress(Unknown, Ambiguous):
        type_of(data)

    assert effort.since(started) < 2


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_are_known_or_refused(seed):
    chance = random.Random(seed)
    for name, (data, _) in SAMPLES.items():
        for _ in range(20):
            damaged = bytearray(data)
            for _ in range(chance.randint(1, 20)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            cut = bytes(damaged[: chance.randint(1, len(damaged))])
            with suppress(Unknown, Ambiguous):
                assert type_of(cut, name) in LABELS
