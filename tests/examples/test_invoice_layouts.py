import re
from decimal import Decimal

import pypdfium2
import pytest

from tests.examples import invoices
from tests.examples.running import run_example

pytestmark = [pytest.mark.once, pytest.mark.long]

WITH_PLACES = ("invoice_number", "invoice_date", "gross_total", "currency")
# The word inside the box, if it differs from the value.
WRITTEN = {"EUR": r"€|EUR|Euro", "GBP": r"£|GBP", "USD": r"\$|USD", "CHF": "CHF"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    ran = {}

    def outcome(layout):
        if layout not in ran:
            ran[layout] = run_example("invoice", tmp_path_factory.mktemp(layout.__name__), "invoice.pdf", layout())
        return ran[layout]

    return outcome


@pytest.mark.parametrize("layout", invoices.EXPECTED, ids=lambda layout: layout.__name__)
def test_an_invoice_is_read_however_it_is_laid_out(outcomes, layout):
    outcome = outcomes(layout)

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    expected = invoices.EXPECTED[layout]
    assert {name: field["value"] for name, field in outcome.fields.items() if name in expected} == expected, outcome.log


@pytest.mark.parametrize("layout", invoices.EXPECTED, ids=lambda layout: layout.__name__)
def test_each_field_says_how_sure_it_is_and_why(outcomes, layout):
    outcome = outcomes(layout)

    assert all(field["confidence"] >= 0.7 for name, field in outcome.fields.items() if name in WITH_PLACES), outcome.log
    explained = outcome.artifact("explanation.txt").decode()
    assert all(
        re.search(rf"^{name} = \S.* \(0\.\d\d on page \d\): \w", explained, re.MULTILINE) for name in WITH_PLACES
    )


@pytest.mark.parametrize("layout", invoices.EXPECTED, ids=lambda layout: layout.__name__)
def test_the_box_of_a_field_covers_what_was_read(outcomes, layout):
    fields = outcomes(layout).fields

    document = pypdfium2.PdfDocument(layout())
    for name in WITH_PLACES:
        assert says(text_under(document, fields[name]), fields[name]["value"], name)


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
        return Decimal(digits) / 100 == Decimal(value)
    if name == "invoice_date":
        year, _, day = value.split("-")
        return year in text and str(int(day)) in text and len(text) < 20
    return text.strip(" .:") == value


def test_the_line_items_are_a_table(outcomes):
    rows = outcomes(invoices.german_letter).artifact("line_items.csv").decode().splitlines()

    assert rows == [
        "page,position,description,quantity,unit,unit_price,tax_rate,amount,multiplies",
        '1,1,"Regal Eiche, 240 cm",2,,480.00,,960.00,yes',
        "1,2,Montage,4.5,Std.,62.00,,279.00,yes",
    ]


def test_items_of_all_pages_are_found(outcomes):
    rows = outcomes(invoices.two_pages).artifact("line_items.csv").decode().splitlines()

    assert len(rows) == 23
    assert rows[-1] == "2,,Delivery,1,,50.00,,50.00,yes"


def test_places_on_a_turned_page_are_those_that_a_reader_sees(tmp_path, outcomes):
    turned = run_example("invoice", tmp_path, "invoice.pdf", invoices.turned(invoices.english_classic()))

    upright = outcomes(invoices.english_classic).fields
    assert turned.value("invoice_number") == "AO-2026-0117"
    assert turned.fields["invoice_number"]["box"] == pytest.approx(upright["invoice_number"]["box"], abs=0.002)
