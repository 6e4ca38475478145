import csv
import io
import json
from datetime import datetime

import pytest
from openpyxl import load_workbook

from documents import cell_corrections, table_exports
from documents.cell_corrections import Place
from tests.factories import table_of

pytestmark = pytest.mark.django_db

COLUMNS = [
    {"name": "article", "label": "Article <&>", "kind": "text"},
    {"name": "price", "label": "Price", "kind": "amount"},
    {"name": "share", "label": "", "kind": "percentage"},
    {"name": "since", "label": "Since", "kind": "date"},
    {"name": "count", "label": "Count", "kind": "decimal"},
]


def cell(text, value=None):
    return {"text": text, "value": value}


@pytest.fixture
def table(document):
    return table_of(
        document,
        [],
        [cell("=1+1"), cell("1,50 €", "1.50 EUR"), cell("19 %", "19"), cell("1.5.26", "2026-05-01"), cell("(3)", "-3")],
        [cell("a\nb\ufffe"), cell("free"), cell("-"), cell("1812", "1812-01-01"), cell("9" * 20, "9" * 20)],
        columns=COLUMNS,
    )


def sheet_of(table):
    sheet = load_workbook(io.BytesIO(table_exports.file_of(table, "xlsx").data)).active
    return sheet, [[cell.value for cell in row] for row in sheet.rows]


def test_a_spreadsheet_has_numbers_and_dates_as_such(table):
    sheet, rows = sheet_of(table)

    assert rows == [
        ["Article <&>", "Price (EUR)", "share", "Since", "Count"],
        ["=1+1", 1.5, 0.19, datetime(2026, 5, 1), -3],  # noqa: DTZ001  # spreadsheets have no zones
        ["a\nb", "free", "-", "1812", "9" * 20],
    ]
    assert (sheet["A2"].data_type, sheet["C2"].number_format, sheet.title) == ("s", "0.00%", "table_1")


def test_amounts_of_several_currencies_stay_texts(document):
    columns = [COLUMNS[1]]
    table = table_of(document, [], [cell("1 €", "1 EUR")], [cell("2 $", "2 USD")], columns=columns)

    assert sheet_of(table)[1] == [["Price"], ["1 €"], ["2 $"]]


def test_a_csv_file_has_normal_forms_and_no_formulas(table):
    file = table_exports.file_of(table, "csv")

    rows = list(csv.reader(io.StringIO(file.data.decode("utf-8-sig"))))
    assert rows == [
        ["Article <&>", "Price", "share", "Since", "Count"],
        ["'=1+1", "1.50 EUR", "19", "2026-05-01", "-3"],
        ["a\nb\ufffe", "free", "'-", "1812-01-01", "9" * 20],
    ]
    assert (file.name, file.content_type) == (
        f"document-{table.document_id}-table_1.csv",
        "text/csv; charset=utf-8",
    )


def test_json_has_texts_values_and_who_corrected_them(table):
    cell_corrections.correct(table.document_id, Place("table_1", 1, "count"), "4", actor="olga")

    found = json.loads(table_exports.file_of(table, "json").data)

    assert found["columns"] == COLUMNS
    assert found["rows"][0][4] == {"text": "4", "value": "4", "machine_text": "(3)", "corrected_by": "olga"}
    assert found["rows"][0][0]["corrected_by"] is None


def test_a_correction_is_in_every_file(table):
    cell_corrections.correct(table.document_id, Place("table_1", 2, "price"), "2,75 €", actor="olga")

    assert sheet_of(table)[1][2][1] == 2.75
    assert b"2.75 EUR" in table_exports.file_of(table, "csv").data


def test_the_name_of_a_sheet_is_short_enough(document):
    table = table_of(document, name="a" * 100)

    assert table_exports.file_of(table, "xlsx").name == f"document-{document.pk}-{'a' * 100}.xlsx"
    assert sheet_of(table)[0].title == "a" * 31
