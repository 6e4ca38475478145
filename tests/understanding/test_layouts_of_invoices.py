"""Invoices with unusual layouts: ten PDFs, read by the real reader. None of them was used to fit the weights."""

import re
from decimal import Decimal

import pypdfium2
import pytest

from documents.extraction import local
from tests.extractor.extracting import PDF
from tests.understanding.drawing import invoices

pytestmark = [pytest.mark.once, pytest.mark.long]

MAIN = ("invoice_number", "invoice_date", "gross_total", "currency")
TOTALS = ("net_total", "tax_total", "gross_total")
# What stands on a page and is not found. None of it may be found with a wrong value.
MISSED = [
    # The table has no heading.
    (invoices.dutch_without_head, "line_items"),
    # It has no label and stands below an address.
    (invoices.modern_cards, "buyer_vat_id"),
    # The address stands on the right, as for windows in Switzerland.
    (invoices.swiss_row_of_totals, "buyer"),
]
# The word inside the box, if it differs from the value.
WRITTEN = {"EUR": r"€|EUR|Euro", "GBP": r"£|GBP", "USD": r"\$|USD", "CHF": "CHF"}
each_layout = pytest.mark.parametrize("layout", invoices.EXPECTED, ids=lambda layout: layout.__name__)


class Read:
    def __init__(self, folder, content):
        file = folder / "invoice.pdf"
        file.write_bytes(content)
        within = {"wall_seconds": 600}
        extraction = local.extract(file, PDF, 1, 100, folder, **within)
        self.digest = local.digest(file, PDF, [extraction.path], folder, **within)
        surest_last = sorted(self.digest["fields"], key=lambda field: field["confidence"] or 0)
        self.fields = {field["name"]: field for field in surest_last}

    @property
    def line_items(self):
        return next((table for table in self.digest["tables"] if table["name"] == "line_items"), {"rows": []})

    def value(self, name):
        if name == "line_items":
            return len(self.line_items["rows"])
        value = self.fields[name]["value"] if name in self.fields else None
        return value.split()[0] if value and name in TOTALS else value


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    done = {}

    def read(layout):
        if layout not in done:
            done[layout] = Read(tmp_path_factory.mktemp(layout.__name__), layout())
        return done[layout]

    return read


@each_layout
def test_an_invoice_is_understood_however_it_is_laid_out(reads, layout):
    read = reads(layout)

    expected = {name: value for name, value in invoices.EXPECTED[layout].items() if (layout, name) not in MISSED}
    assert {name: read.value(name) for name in expected} == expected
    assert read.digest["type"]["name"] == "invoice"


@pytest.mark.parametrize(("layout", "name"), [pytest.param(*each, id=each[1]) for each in MISSED])
def test_what_is_missed_is_not_invented(reads, layout, name):
    assert not reads(layout).value(name)


@each_layout
def test_the_main_fields_are_sure_and_give_a_reason(reads, layout):
    fields = reads(layout).fields

    assert {name: fields[name]["confidence"] for name in MAIN if fields[name]["confidence"] < 0.7} == {}
    assert all(fields[name]["reason"] for name in MAIN)


@each_layout
def test_the_box_of_a_field_covers_what_was_read(reads, layout):
    fields = reads(layout).fields

    document = pypdfium2.PdfDocument(layout())
    for name in MAIN:
        if fields[name]["box"]:
            assert says(text_under(document, fields[name]), fields[name]["value"], name), (name, fields[name])
    assert sum(fields[name]["box"] is not None for name in MAIN) >= 3


def text_under(document, field):
    page = document[field["page"] - 1]
    width, height = page.get_size()
    left, top, right, bottom = field["box"]
    text_page = page.get_textpage()
    return text_page.get_text_bounded(left * width, height - bottom * height, right * width, height - top * height)


def says(text, value, name):
    if name == "currency":
        return re.search(WRITTEN[value], text)
    if name == "gross_total":
        digits = re.sub(r"\D", "", text)
        return Decimal(digits) / 100 == Decimal(value.split()[0])
    if name == "invoice_date":
        year, _, day = value.split("-")
        return year in text and str(int(day)) in text and len(text) < 20
    return text.strip(" .:") == value


def test_line_items_have_their_columns(reads):
    table = reads(invoices.german_letter).line_items

    names = [column["name"] for column in table["columns"]]
    rows = [{name: cell["value"] for name, cell in zip(names, row, strict=False)} for row in table["rows"]]
    assert [(row["description"], row["quantity"], row["unit_price"], row["amount"]) for row in rows] == [
        ("Regal Eiche, 240 cm", "2", "480.00 EUR", "960.00 EUR"),
        ("Montage", "4.5", "62.00 EUR", "279.00 EUR"),
    ]


def test_the_places_on_a_turned_page_are_those_that_a_person_sees(reads, tmp_path):
    turned = Read(tmp_path, invoices.turned(invoices.english_classic()))

    upright = reads(invoices.english_classic).fields
    assert turned.value("invoice_number") == "AO-2026-0117"
    assert turned.fields["invoice_number"]["box"] == pytest.approx(upright["invoice_number"]["box"], abs=0.002)


def test_a_table_that_only_repeats_the_line_items_is_left_out(reads):
    assert [table["name"] for table in reads(invoices.english_classic).digest["tables"]] == ["line_items"]
