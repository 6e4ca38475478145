"""Hostile archives and XML, in documents and in sheets."""

import io
import struct
import zipfile

import pytest

from tests.extractor.archives import RELATIONSHIPS, archive, docx_of, ods_of, paragraph
from tests.extractor.extracting import CSV, DOCX, EML, HTML, ODS, PDF, TXT, XLS, XLSX, extract, written
from tests.extractor.test_hostile_pdf import failure

pytestmark = [pytest.mark.once, pytest.mark.long]

TYPES = {"docx": DOCX, "xlsx": XLSX, "ods": ODS}


def office(kind, *, head="", **more):
    """Return a harmless file of this kind with these additions."""
    if kind == "docx":
        return docx_of(paragraph("text"), head=head, **more)
    if kind == "ods":
        return ods_of([["text"]], head=head, **more)
    sheet = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    sheet += '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row></sheetData></worksheet>'
    return archive(XLSX_PARTS | {"xl/worksheets/sheet1.xml": head + sheet} | more)


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
XLSX_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "_rels/.rels": RELATIONSHIPS.replace("word/document.xml", "xl/workbook.xml"),
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    f' xmlns:r="{RELATIONS}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def refused(tmp_path, kind, content):
    return failure(written(tmp_path / f"hostile.{kind}", content), TYPES[kind])


each_kind = pytest.mark.parametrize("kind", TYPES)


@each_kind
def test_the_harmless_ones_are_read(tmp_path, kind):
    (page,) = extract(written(tmp_path / "a", office(kind)), TYPES[kind]).pages

    assert page["text"].split("\n\n")[-1] == "text"


# Bombs


@each_kind
def test_a_part_packed_a_thousand_times(tmp_path, kind):
    assert refused(tmp_path, kind, office(kind, **{"more.xml": "<a/>" + " " * (8 << 20)})) == "too_large"


@each_kind
def test_parts_of_gigabytes_in_all(tmp_path, kind):
    # No single part exceeds the compression limit.
    more = {f"{n}.bin": bytes(4 << 20) for n in range(200)}

    content = archive(more | {"[Content_Types].xml": "<a/>", "content.xml": "<a/>"})

    assert refused(tmp_path, kind, content) == "too_large"


@each_kind
def test_too_many_parts(tmp_path, kind):
    assert refused(tmp_path, kind, office(kind, **{f"{n}": "" for n in range(10_001)})) == "too_large"


@each_kind
def test_a_part_that_is_larger_than_it_says(tmp_path, kind):
    content = bytearray(office(kind, **{"more.xml": "<a>" + "x" * 100_000 + "</a>"}))
    for at in places_of(content, struct.pack("<I", 100_007)):
        content[at : at + 4] = struct.pack("<I", 99)

    assert refused(tmp_path, kind, bytes(content)) == "malformed"


@each_kind
def test_parts_that_share_their_bytes(tmp_path, kind):
    """One entry lies within another; a bomb would have thousands of them."""
    inner = archive({"inner.xml": "<a/>" * 99}, zipfile.ZIP_STORED)
    file = io.BytesIO(office(kind))
    with zipfile.ZipFile(io.BytesIO(inner)) as made:
        info = made.getinfo("inner.xml")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as made:
        made.writestr("outer.bin", inner)
        info.header_offset = made.getinfo("outer.bin").header_offset + 30 + len("outer.bin")
        made.filelist.append(info)

    assert refused(tmp_path, kind, file.getvalue()) == "malformed"


def places_of(content, wanted):
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + 1)


def test_a_sheet_of_two_cells_in_the_farthest_corners(tmp_path):
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    sheet = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>'

    assert refused(tmp_path, "xlsx", archive(XLSX_PARTS | {"xl/worksheets/sheet1.xml": sheet})) == "too_large"


def test_a_cell_that_is_repeated_a_billion_times(tmp_path):
    inner = parts_of(ods_of([["x"]]))["content.xml"].decode()
    inner = inner.replace("office:value-type", 'table:number-columns-repeated="16384" office:value-type')
    inner = inner.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="1048576">')

    assert refused(tmp_path, "ods", ods_of([], **{"content.xml": inner})) == "too_large"


def test_a_document_with_more_than_a_tree_can_hold(tmp_path):
    parts = parts_of(docx_of(paragraph("x")))
    grown = parts["word/document.xml"].replace(b"</w:body>", paragraph("x").encode() * 3_500_000 + b"</w:body>")

    assert refused(tmp_path, "docx", archive(parts | {"word/document.xml": grown}, zipfile.ZIP_STORED)) == "too_large"


def parts_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        return {name: made.read(name) for name in made.namelist()}


# XML

LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
# The amount that is unpacked at a time.
EDGE = 1 << 18
DECLARATIONS = {
    "a billion laughs": LAUGHS,
    "a file": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    "an address": '<!DOCTYPE x [<!ENTITY a SYSTEM "http://127.0.0.1:9/">]>',
    "a parameter": '<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>',
    "a remote one": '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    "behind a comment": f"<!--{'x' * 300_000}-->{LAUGHS}",
    "at the edge of what is looked at": f"<!--{'x' * (EDGE - 4 - 7)}--><!DOCTYPE x>",
}


@each_kind
@pytest.mark.parametrize("name", DECLARATIONS)
def test_declarations_of_entities(tmp_path, kind, name):
    assert refused(tmp_path, kind, office(kind, head=DECLARATIONS[name])) == "malformed"


@each_kind
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_declarations_in_wide_characters(tmp_path, kind, encoding):
    hidden = f"<a/>{DECLARATIONS['a remote one']}".encode(encoding)

    assert refused(tmp_path, kind, office(kind, **{"more.xml": hidden})) == "malformed"


@each_kind
@pytest.mark.parametrize("encoding", ["utf-7", "cp037", "utf-32"])
def test_declarations_in_encodings_that_hide_them(tmp_path, kind, encoding):
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    hidden = (
        (head.encode() + f"{LAUGHS}<a/>".encode("utf-7")) if encoding == "utf-7" else (head + LAUGHS).encode(encoding)
    )

    assert refused(tmp_path, kind, office(kind, **{"more.xml": hidden})) == "malformed"


def test_elements_nested_without_end(tmp_path):
    assert refused(tmp_path, "docx", docx_of("<w:p>" * 100_000 + "</w:p>" * 100_000)) == "malformed"


def test_broken_xml(tmp_path):
    assert refused(tmp_path, "docx", docx_of("<w:p>")) == "malformed"
    assert refused(tmp_path, "ods", ods_of([], **{"content.xml": "<a><b></a>"})) in ("malformed", "too_large")


# Content that contradicts its type


@each_kind
def test_one_that_is_cut_off(tmp_path, kind):
    whole = office(kind)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert refused(tmp_path, kind, whole[: int(len(whole) * share)]) == "malformed"


@each_kind
def test_an_archive_of_another_kind(tmp_path, kind):
    assert refused(tmp_path, kind, archive({"hello.txt": "hello"})) == "malformed"
    assert refused(tmp_path, kind, b"MZ" + office(kind)) == "malformed"


def test_kinds_in_each_others_clothes(tmp_path):
    for kind, content_type in [
        ("docx", XLSX),
        ("xlsx", DOCX),
        ("ods", DOCX),
        ("ods", XLSX),
        ("docx", ODS),
        ("docx", XLS),
    ]:
        assert failure(written(tmp_path / "a", office(kind)), content_type) == "malformed", (kind, content_type)
    for content_type in (PDF, CSV, TXT, EML):
        assert failure(written(tmp_path / "a", office("docx")), content_type) == "malformed", content_type


@each_kind
def test_encrypted_parts(tmp_path, kind):
    content = bytearray(office(kind))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for at in places_of(content, mark):
            content[at + offset] |= 1

    assert refused(tmp_path, kind, bytes(content)) == "encrypted"


def test_markup_of_another_kind_is_read_as_what_it_is_called(tmp_path):
    outcome = extract(written(tmp_path / "a", b"%PDF-1.7 <p>words</p>"), HTML)

    assert outcome.pages[0]["text"] == "%PDF-1.7\n\nwords"


@pytest.mark.parametrize("content_type", ["application/zip", "text/html; charset=utf-8", "", "../pdf"])
def test_types_that_nobody_reads(tmp_path, content_type):
    assert extract(written(tmp_path / "a", "x"), content_type).code == "unsupported"
