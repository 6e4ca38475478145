import csv
import io
import json
import zipfile
from datetime import date

import openpyxl
import pytest

from tests.examples.running import EXAMPLES, run_example

pytestmark = [pytest.mark.once, pytest.mark.long]

ODS_CELLS = {
    str: '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>',
    float: '<table:table-cell office:value-type="float" office:value="{}"/>',
    date: '<table:table-cell office:value-type="date" office:date-value="{}"/>',
}


@pytest.fixture
def run(tmp_path):
    return lambda content, name, **told: run_example("spreadsheet", tmp_path / "run", name, content, **told)


def rows_of(outcome, name):
    return list(csv.reader(io.StringIO(outcome.artifact(name).decode())))


def sheet_of(outcome, place=0):
    return json.loads(outcome.artifact("report.json"))["sheets"][place]


def workbook(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name.replace("_", " "))
        for row in rows:
            sheet.append(row)
    saved = io.BytesIO()
    book.save(saved)
    return saved.getvalue()


def ods(rows):
    cells = ("".join(ODS_CELLS[type(value)].format(value) for value in row) for row in rows)
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    content = (
        '<?xml version="1.0" encoding="UTF-8"?><office:document-content'
        ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:body>'
        f'<office:spreadsheet><table:table table:name="Lager">{table}</table:table></office:spreadsheet>'
        "</office:body></office:document-content>"
    )
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr(
            "META-INF/manifest.xml",
            '<?xml version="1.0"?>'
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        )
    return saved.getvalue()


def test_the_sample_becomes_clean_and_typed(run):
    outcome = run((EXAMPLES / "documents" / "sales.csv").read_bytes(), "sales.csv")

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    rows = rows_of(outcome, "sales.csv")
    assert rows[0] == ["No.", "Date", "Customer", "Article", "Amount", "Amount 2", "Paid"]
    assert rows[2] == ["0002", "2026-10-05", "Kanzlei Brandt", "Cider, bottle", "1042.00", "1042.00", "false"]
    assert rows[5][3] == "'=2+3"
    report = sheet_of(outcome)
    assert (report["header_row"], report["rows"], report["dropped"]) == (4, 8, {"empty_rows": 2, "empty_columns": 1})
    kinds = ["text", "date", "text", "text", "decimal", "decimal", "boolean"]
    assert [column["type"] for column in report["columns"]] == kinds
    assert [(misfit["place"], misfit["found"]) for misfit in report["misfits"]] == [
        ("B11", "soon"),
        ("F12", "to be agreed"),
    ]
    assert outcome.value("cells_that_do_not_fit") == 2


def test_every_sheet_of_a_workbook_becomes_a_file(run):
    content = workbook(
        Sales_2026=[
            ["Report"],
            [],
            ["Day", "Pieces", "Price"],
            [date(2026, 11, 18), 3, 12.5],
            [date(2026, 11, 19), 4.0, 13],
        ],
        Übersicht=[["name", "ok"], ["a", True], ["b", False]],
        empty=[],
    )
    outcome = run(content, "book.xlsx")

    assert outcome.artifacts() == ["Sales-2026.csv", "bersicht.csv", "report.json", "report.txt"]
    days = [["Day", "Pieces", "Price"], ["2026-11-18", "3", "12.5"], ["2026-11-19", "4", "13"]]
    assert rows_of(outcome, "Sales-2026.csv") == days
    assert rows_of(outcome, "bersicht.csv") == [["name", "ok"], ["a", "true"], ["b", "false"]]
    assert (outcome.value("sheets"), outcome.value("rows"), outcome.value("columns")) == (2, 4, 5)


def test_places_are_those_of_the_sheet_when_it_begins_further_down(run):
    book = openpyxl.Workbook()
    for row, values in enumerate([["Item", "Price"], ["a", 1.5], ["b", 2.5], ["c", 1.0], ["d", 2], ["e", "x"]], 5):
        for column, value in enumerate(values, 3):
            book.active.cell(row, column, value)
    saved = io.BytesIO()
    book.save(saved)

    report = sheet_of(run(saved.getvalue(), "book.xlsx"))

    assert report["header_row"] == 5
    assert [misfit["place"] for misfit in report["misfits"]] == ["D10"]


def test_an_open_document_is_read(run):
    rows = [["Teil", "Menge", "Seit"], ["Schraube", 12.0, date(2026, 1, 2)], ["Mutter", 7.5, date(2026, 3, 4)]]
    outcome = run(ods(rows), "lager.ods")

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    expected = [["Teil", "Menge", "Seit"], ["Schraube", "12", "2026-01-02"], ["Mutter", "7.5", "2026-03-04"]]
    assert rows_of(outcome, "Lager.csv") == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "windows-1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_encoding_and_delimiter_are_found(run, encoding, delimiter):
    lines = [["Straße", "Ort", "Preis"], ["Größe 5", "Köln", "3.5"], ["Weg 2", "Mâcon", "4.25"]]
    content = "\r\n".join(delimiter.join(line) for line in lines).encode(encoding)

    assert rows_of(run(content, "orte.csv"), "orte.csv") == lines


def test_the_line_that_tells_excel_the_delimiter_is_no_row(run):
    assert rows_of(run("sep=;\na;b\n1;2\n", "x.csv"), "x.csv") == [["a", "b"], ["1", "2"]]


def test_texts_are_cleaned(run):
    outcome = run("name,city\nZoe\u0308,\u00a0New\u200b  York \n", "x.csv")

    assert rows_of(outcome, "x.csv")[1] == ["Zo\u00eb", "New York"]
    assert sheet_of(outcome)["changes"] == {"texts cleaned": 2}


@pytest.mark.parametrize(
    ("cells", "kind", "written"),
    [
        (["1", "2", "-3"], "integer", ["1", "2", "-3"]),
        (["1.234", "2.500", "12,5"], "decimal", ["1234", "2500", "12.5"]),
        (["1,234", "2,500", "12.5"], "decimal", ["1234", "2500", "12.5"]),
        (["1'234.50", "$ 5.00", "0.5"], "decimal", ["1234.50", "5.00", "0.5"]),
        (["007", "012", "123"], "text", ["007", "012", "123"]),
        (["31.12.2026", "1.2.26", "2026-03-04"], "date", ["2026-12-31", "2026-02-01", "2026-03-04"]),
        (["12/31/2026", "02/01/2026", "03/04/2026"], "date", ["2026-12-31", "2026-02-01", "2026-03-04"]),
        (["31/12/2026", "02/01/2026", "03/04/2026"], "date", ["2026-12-31", "2026-01-02", "2026-04-03"]),
        (["yes", "no", "Ja"], "boolean", ["true", "false", "true"]),
        (["1", "two", "3"], "text", ["1", "two", "3"]),
        (["12345678901234567890", "1", "2"], "text", ["12345678901234567890", "1", "2"]),
    ],
)
def test_a_column_is_of_the_type_of_its_cells(run, cells, kind, written):
    outcome = run("\n".join(["name;value", *(f"a;{cell}" for cell in cells)]), "x.csv")

    assert sheet_of(outcome)["columns"][1]["type"] == kind
    assert [row[1] for row in rows_of(outcome, "x.csv")[1:]] == written


def test_names_are_made_different_and_complete(run):
    outcome = run("id,Amount,,amount,Amount\n1,2,3,4,5\n", "x.csv")

    assert rows_of(outcome, "x.csv")[0] == ["id", "Amount", "column C", "amount 2", "Amount 3"]


def test_without_a_header_columns_are_named_by_letters(run):
    outcome = run("1,2\n3,4\n", "x.csv")

    assert rows_of(outcome, "x.csv") == [["column A", "column B"], ["1", "2"], ["3", "4"]]
    assert "no header found" in outcome.artifact("report.txt").decode()


HOSTILE = ["=HYPERLINK(A1)", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_spreadsheet_would_run_stays_text(run, hostile):
    outcome = run(f"name;note\na;b\nc;{hostile}\n", "x.csv")

    assert rows_of(outcome, "x.csv")[2] == ["c", f"'{hostile}"]


def test_of_a_formula_in_a_workbook_only_its_last_value_is_read(run):
    outcome = run(workbook(S=[["name", "sum"], ["a", 1], ["b", 2], ["c", "=1+2"]]), "x.xlsx")

    # openpyxl does not calculate, so the cell has no value.
    assert rows_of(outcome, "S.csv")[3] == ["c", ""]


def test_rows_of_different_lengths_are_no_trouble(run):
    outcome = run("a,b\n1\n2,3,4\n", "x.csv")

    assert rows_of(outcome, "x.csv") == [["a", "b", "column C"], ["1", "", ""], ["2", "3", "4"]]


def test_many_rows_are_told_with_progress(run):
    rows = "".join(f"{number},{number / 4},2026-01-{number % 28 + 1:02}\n" for number in range(50_000))
    outcome = run("number,quarter,day\n" + rows, "many.csv")

    assert outcome.value("rows") == 50_000
    assert [column["type"] for column in sheet_of(outcome)["columns"]] == ["integer", "decimal", "date"]
    last = [event for event in outcome.events if event["kind"] == "progress"][-1]
    assert last["done"] == last["total"] == 50_001


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.pdf", b"%PDF-1.7", "is not a spreadsheet (xlsx, xls, ods or csv) but application/pdf."),
        ("x.csv", bytes(range(256)), "it contains zero bytes."),
        ("x.xlsx", b"PK\x03\x04 no zip at all", "cannot be opened"),
        ("x.xls", b"\xd0\xcf\x11\xe0 no workbook at all", "cannot be opened"),
        ("x.csv", b"\n\n", "contains no table: its sheets (1) are empty."),
        ("x.csv", b"", "contains no table: its sheets (1) are empty."),
    ],
)
def test_what_is_no_spreadsheet_is_rejected(run, name, content, reason):
    outcome = run(content, name)

    assert outcome.result["outcome"] == "rejected", outcome.printed
    assert reason in outcome.result["error"]
