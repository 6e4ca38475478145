import datetime
import struct

import openpyxl
import pytest

from tests.extractor.archives import compound, ods_of, xls_of
from tests.extractor.extracting import ODS, XLS, XLSX, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]


def xlsx_of(path, **sheets):
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_each_sheet_is_a_page_as_table_and_as_text(tmp_path):
    file = xlsx_of(tmp_path / "a.xlsx", Sales=[["Item", "Price"], ["Tea", 3.5]], Notes=[["nothing"]])

    sales, notes = extract(file, XLSX).pages

    assert sales["tables"] == [{"box": None, "rows": [["Item", "Price"], ["Tea", "3.5"]]}]
    assert sales["text"] == "Sales\n\nItem\tPrice\nTea\t3.5"
    assert (notes["number"], notes["text"]) == (2, "Notes\n\nnothing")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.0, "5"),
        (-0.25, "-0.25"),
        (1e20, "1e+20"),
        (True, "TRUE"),
        ("a\r\nb", "a\nb"),
        (datetime.date(2026, 2, 3), "2026-02-03"),
        (datetime.datetime(2026, 2, 3, 4, 5), "2026-02-03 04:05:00"),  # noqa: DTZ001  # workbooks have no time zones
        (datetime.time(4, 5), "04:05:00"),
        ("=HYPERLINK(1)", ""),
    ],
)
def test_values_are_as_people_write_them(tmp_path, value, text):
    file = xlsx_of(tmp_path / "a.xlsx", A=[["x", value, "y"]])

    assert extract(file, XLSX).pages[0]["tables"][0]["rows"] == [["x", text, "y"]]


def test_only_the_sheets_that_are_asked_for(tmp_path):
    file = xlsx_of(tmp_path / "a.xlsx", **{f"S{n}": [[n]] for n in range(1, 6)})

    outcome = extract(file, XLSX, 2, 3)

    assert [(page["number"], page["text"]) for page in outcome.pages] == [(2, "S2\n\n2"), (3, "S3\n\n3")]
    assert outcome.document["pages_total"] == 5


def test_an_empty_sheet_is_a_page_without_text(tmp_path):
    (page,) = extract(xlsx_of(tmp_path / "a.xlsx", Empty=[]), XLSX).pages

    assert (page["has_text"], page["tables"]) == (False, [])


def test_empty_rows_and_columns_around_the_values_are_left_out(tmp_path):
    file = xlsx_of(tmp_path / "a.xlsx", A=[[], [], [None, "a", None, "b"], [], [None, "c"]])

    assert extract(file, XLSX).pages[0]["tables"][0]["rows"] == [["a", "", "b"], ["", "", ""], ["c", "", ""]]


def test_the_older_format(tmp_path):
    file = written(tmp_path / "a.xls", xls_of({"One": {(0, 0): "Näme", (0, 1): 12.5}, "Two": {(5, 5): 7}}))

    one, two = extract(file, XLS).pages

    assert one["tables"][0]["rows"] == [["Näme", "12.5"]]
    assert two["text"] == "Two\n\n7"


def test_open_document(tmp_path):
    file = written(tmp_path / "a.ods", ods_of([["Item", "Price"], ["Tea", "3,50"]]))

    assert extract(file, ODS).pages[0]["text"] == "Numbers\n\nItem\tPrice\nTea\t3,50"


@pytest.mark.parametrize("kind", [b"\0\0\1\2\3\4", b"\1\0" + bytes(50)], ids=["xor", "rc4"])
def test_an_old_one_with_a_password_is_refused(tmp_path, kind):
    more = struct.pack("<HH", 0x2F, len(kind)) + kind

    assert (
        extract(written(tmp_path / "a.xls", xls_of({"A": {(0, 0): "x"}}, more_globals=more)), XLS).code == "encrypted"
    )


@pytest.mark.parametrize("content_type", [XLSX, XLS])
def test_a_new_one_with_a_password_is_refused(tmp_path, content_type):
    file = written(tmp_path / "a.xlsx", compound({"EncryptionInfo": bytes(99), "EncryptedPackage": bytes(9999)}))

    assert extract(file, content_type).code == "encrypted"


def test_an_open_one_with_a_password_is_refused(tmp_path):
    manifest = "<m:manifest xmlns:m='x'><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"
    file = ods_of([["a"]], **{"META-INF/manifest.xml": manifest, "content.xml": bytes(range(256))})

    assert extract(written(tmp_path / "a.ods", file), ODS).code == "encrypted"


def test_the_same_file_gives_the_same_bytes(tmp_path):
    file = xlsx_of(tmp_path / "a.xlsx", A=[["x", 1.1]])

    assert extract(file, XLSX, directory=tmp_path / "1").output == extract(file, XLSX, directory=tmp_path / "2").output
