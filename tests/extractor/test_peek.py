"""A preview of tables and text that fills one screen, read by the child itself."""

import json

import pytest

from documents.children import COLD_EXTRACTOR
from documents.extraction import ExtractionFailed, local
from tests.documents.samples import EML
from tests.extractor.archives import docx_of, paragraph
from tests.extractor.extracting import CSV, DOCX, PDF, XLSX, written
from tests.extractor.pdfs import long_pdf
from tests.extractor.test_workbook import xlsx_of

pytestmark = [pytest.mark.once, pytest.mark.long]


@pytest.fixture
def peek(tmp_path):
    def peek(file, content_type, page=1):
        (directory := tmp_path / f"out{page}").mkdir(exist_ok=True)
        told = local.peek(file, content_type, page, directory, wall_seconds=30, run=COLD_EXTRACTOR)
        return json.loads(told)

    return peek


def test_of_a_table_there_are_its_first_rows_and_columns(tmp_path, peek):
    rows = "\n".join(",".join(f"{row}.{column}" for column in range(50)) for row in range(300))

    told = peek(written(tmp_path / "a.csv", rows), CSV)

    assert (told["rows_total"], told["columns_total"], told["pages"]) == (300, 50, 1)
    assert (len(told["rows"]), {len(row) for row in told["rows"]}) == (100, {40})
    assert told["rows"][99][39] == "99.39"


def test_long_values_are_cut(tmp_path, peek):
    (heading, row) = peek(written(tmp_path / "a.csv", f"a,b\n{'x' * 5000},y"), CSV)["rows"]

    assert (heading, row) == (["a", "b"], ["x" * 199 + "…", "y"])


def test_each_sheet_is_a_page_with_its_name(tmp_path, peek):
    file = xlsx_of(tmp_path / "a.xlsx", Sales=[["Item", "Price"], ["Tea", 3.5]], Notes=[["nothing"]])

    told = peek(file, XLSX, 2)

    assert (told["pages"], told["title"], told["rows"]) == (2, "Notes", [["nothing"]])
    with pytest.raises(ExtractionFailed, match="the document has pages 1 to 2"):
        peek(file, XLSX, 3)


def test_what_has_no_table_is_text(tmp_path, peek):
    told = peek(written(tmp_path / "a.docx", docx_of(paragraph("Dear Ms Müller"))), DOCX)

    assert (told["text"], told["rows"], told["rows_total"]) == ("Dear Ms Müller", [], 0)


def test_of_what_is_drawn_only_its_pages_are_counted(tmp_path, peek):
    told = peek(long_pdf(tmp_path / "a.pdf", 3), PDF)

    assert (told["pages"], told["text"], told["rows"]) == (3, "", [])


@pytest.mark.parametrize("content_type", [PDF, XLSX, DOCX])
def test_what_is_something_else_is_refused(tmp_path, peek, content_type):
    with pytest.raises(ExtractionFailed) as caught:
        peek(written(tmp_path / "a", EML), content_type)

    assert caught.value.permanent
