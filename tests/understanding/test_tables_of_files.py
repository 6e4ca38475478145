"""Tables in the digest: the real reader reads a file and digests it."""

import pytest
from openpyxl import Workbook

from ade_extractor import OUTPUT
from ade_understanding.tables import data
from documents.extraction import local
from tests.extractor.extracting import CSV, HTML, PDF, PNG, XLSX, written
from tests.extractor.scans import images_of, needs_rapidocr, pdf_with
from tests.understanding.table_pages import Page, kinds, labels, texts
from tests.understanding.test_tables import GOODS, ruled, unruled

pytestmark = [pytest.mark.once, pytest.mark.long]

TEXT = "Region;Sales;Share;Since\nNorth;1.250,50 €;12,5 %;1.5.2026\nSouth;80,00 €;7 %;31.12.2025\n"


def digest(file, content_type, *, with_ocr=False):
    """Return the tables of what ADE keeps of this file."""
    directory = file.parent / "pages"
    directory.mkdir()
    within = {"wall_seconds": 600}
    local.extract(file, content_type, 1, 1000, directory, with_ocr=with_ocr, **within)
    return local.digest(file, content_type, [directory / OUTPUT], directory, **within)["tables"]


def test_a_csv_file_has_a_table_with_typed_columns(tmp_path):
    (table,) = digest(written(tmp_path / "sales.csv", TEXT), CSV)

    assert (table["name"], table["page"], table["box"], table["rows_left_out"]) == ("table_1", 1, None, 0)
    assert table["columns"] == [
        {"name": "region", "label": "Region", "kind": "text"},
        {"name": "sales", "label": "Sales", "kind": "amount"},
        {"name": "share", "label": "Share", "kind": "percentage"},
        {"name": "since", "label": "Since", "kind": "date"},
    ]
    assert table["rows"][0][1] == {"text": "1.250,50 €", "value": "1250.50 EUR", "page": 1, "box": None}


def test_each_sheet_of_a_workbook_is_a_table_and_what_is_too_much_is_counted(tmp_path):
    workbook = Workbook()
    workbook.active.append(["Number", "Square"])
    for number in range(data.MOST_ROWS + 7):
        workbook.active.append([number, number * number])
    workbook.create_sheet("Empty")
    workbook.create_sheet("Note").append(["Only one cell"])
    workbook.save(tmp_path / "numbers.xlsx")

    (table,) = digest(tmp_path / "numbers.xlsx", XLSX)

    assert (len(table["rows"]), table["rows_left_out"]) == (data.MOST_ROWS, 7)
    assert (labels(table), kinds(table)) == (["Number", "Square"], ["decimal", "decimal"])
    assert table["rows"][-1][1]["value"] == str((data.MOST_ROWS - 1) ** 2)


def test_a_table_of_a_web_page_is_kept_without_names_if_its_first_row_has_values(tmp_path):
    rows = "".join(f"<tr><td>{name}</td><td>{count}</td></tr>" for name, count, _ in GOODS)

    (table,) = digest(written(tmp_path / "page.html", f"<table>{rows}</table>"), HTML)

    assert [column["name"] for column in table["columns"]] == ["column_1", "column_2"]
    assert texts(table) == [[name, count] for name, count, _ in GOODS]


def test_the_tables_of_a_pdf_are_found_with_their_lines(tmp_path):
    page = Page(tmp_path / "page.pdf")
    ruled(page, top=100)
    unruled(page, top=400)

    one, other = digest(page.save(), PDF)

    assert (texts(one), texts(other)) == (GOODS, GOODS)
    assert (one["name"], other["name"]) == ("table_1", "table_2")


def test_the_pages_of_a_long_pdf_that_may_have_tables_are_examined(tmp_path):
    page = Page(tmp_path / "page.pdf")
    for number in range(60):
        page.pdf.add_page()
        page.text(60, 60, f"Chapter {number}")
    unruled(page)

    (table,) = digest(page.save(), PDF)

    assert (table["page"], texts(table)) == (61, GOODS)


@needs_rapidocr
@pytest.mark.parametrize("draw", [ruled, unruled])
def test_a_scan_has_tables_like_the_page_that_was_scanned(tmp_path, draw):
    page = Page(tmp_path / "page.pdf")
    draw(page)
    scan = pdf_with(tmp_path / "scan.pdf", images_of(page.save()))

    (table,) = digest(scan, PDF, with_ocr=True)

    assert (labels(table), texts(table)) == (["Article", "Quantity", "Price"], GOODS)
    assert kinds(table) == ["text", "decimal", "decimal"]


@needs_rapidocr
def test_a_scanned_image_has_tables(tmp_path):
    page = Page(tmp_path / "page.pdf")
    unruled(page)
    (image,) = images_of(page.save())
    image.save(tmp_path / "scan.png")

    (table,) = digest(tmp_path / "scan.png", PNG, with_ocr=True)

    assert texts(table) == GOODS
