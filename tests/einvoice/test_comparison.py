"""An e-invoice and the pages that show it."""

import json
import re

import pytest

from ade_extractor import pdf
from ade_understanding.einvoice.reading import read
from ade_understanding.einvoice.understanding import understand
from tests.einvoice import making


def understood(tmp_path, *, rows=making.PAGE, xml=None, read_by_recogniser=()):
    path = making.pdf(tmp_path / "invoice.pdf", rows)
    pages = []
    for each in pdf.read(path, "application/pdf", 1, 9).pages:
        each.place_words()
        pages.append((each.number, json.loads(each.words)))
    return understand(read((xml or making.cii()).encode()), pages, read_by_recogniser)


def problems_of(tmp_path, **options):
    return [(each["code"], each["field"]) for each in understood(tmp_path, **options).problems]


def page_field(name, value, confidence=0.95, kind="text"):
    return {
        "name": name,
        "value": value,
        "kind": kind,
        "confidence": confidence,
        "page": 1,
        "box": None,
        "source": "page",
    }


def test_nothing_is_wrong_if_page_and_xml_agree(tmp_path):
    assert understood(tmp_path).problems == []


def test_every_printed_value_has_its_place(tmp_path):
    found = understood(tmp_path)

    fields = {each["name"]: each for each in found.fields}
    unprinted = {"profile", "note", "seller_id", "seller_global_id", "payment_means", "charge_total"}
    assert {name for name, each in fields.items() if each["page"] is None} == unprinted
    assert all(each["source"] == "e-invoice" and each["confidence"] == 1 for each in found.fields)
    left, top, right, bottom = fields["gross_total"]["box"]
    assert 0.5 < left < right < 1
    assert fields["net_total"]["box"][3] < top < bottom < fields["due_amount"]["box"][1]
    (lines, *_) = found.tables
    assert [[cell["page"] for cell in row] for row in lines["rows"]] == [[None, 1, 1, 1, None, 1, 1, 1]] * 2


def test_of_equal_values_the_one_at_the_label_is_taken(tmp_path):
    rows = (("Subtotal of page", "52.92"), *making.PAGE, ("Carried over", "52.92"))

    fields = {each["name"]: each for each in understood(tmp_path, rows=rows).fields}

    assert fields["prepaid_amount"]["box"][1] > fields["gross_total"]["box"][1] > fields["tax_total"]["box"][1]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("2026-117", "2026-118", "invoice_number"),
        ("05.03.2026", "06.03.2026", "invoice_date"),
        ("04.04.2026", "14.04.2026", "due_date"),
        ("03.03.2026", "01.03.2026", "delivery_date"),
        ("K-4711", "K-4712", "customer_number"),
        ("B-88", "B-89", "order_number"),
        ("Nagel & Söhne", "Nagel & Kinder", "seller"),
        ("Am Markt 1", "Am Markt 2", "seller_address"),
        ("Kranbau Weser AG", "Kranbau Elbe AG", "buyer"),
        ("27568", "27569", "buyer_address"),
        ("DE136695976", "DE136695977", "vat_id"),
        ("60/111/22222", "60/111/22223", "tax_number"),
        ("0532 0130 00", "0532 0130 01", "iban"),
        ("COBADEFFXXX", "COBADEFFXXY", "bic"),
        ("+49 421 1234", "+49 421 1235", "phone"),
        ("ada@nagel", "eda@nagel", "email"),
        ("30 days", "14 days", "payment_terms"),
        ("48.50", "47.50", "net_total"),
        ("1.62", "1.63", "tax_amount_19"),
        ("of 40.00", "of 41.00", "net_total"),
        ("4.42", "4.43", "tax_total"),
        ("52.92", "53.92", "gross_total"),
        ("10.00", "11.00", "prepaid_amount"),
        ("42.92", "43.92", "due_amount"),
        ("EUR", "USD", "currency"),
        ("9.50", "9.60", "line_items"),
        ("Steel nails", "Steel snails", "line_items"),
        ("N-10", "N-11", "line_items"),
        ("100  0.0950", "101  0.0950", "line_items"),
        ("20.00  7 %", "21.00  7 %", "line_items"),
    ],
)
def test_a_change_of_the_page_is_found(tmp_path, old, new, expected):
    found = problems_of(tmp_path, rows=making.page(**{old: new}))

    assert expected in {field for _, field in found}, found
    assert {code for code, _ in found} <= {"differs_from_page", "not_on_page"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (">2026-117<", ">2026-119<", "invoice_number"),
        (">20260305<", ">20260306<", "invoice_date"),
        (">20260404<", ">20260405<", "due_date"),
        (">20260303<", ">20260302<", "delivery_date"),
        (">K-4711<", ">K-4911<", "customer_number"),
        ("Söhne", "Töchter", "seller"),
        ("Hafenstraße 20", "Hafenstraße 21", "buyer_address"),
        ("DE136695976", "DE136695967", "vat_id"),
        ("DE89370400440532013000", "DE02120300000000202051", "iban"),
        ("COBADEFFXXX", "COBADEFFZZZ", "bic"),
        (">52.92<", ">62.92<", "gross_total"),
        (">EUR<", ">CHF<", "currency"),
        ("Hammer, small", "Hammer, large", "line_items"),
        (">40.00</ram:LineTotal", ">41.00</ram:LineTotal", "line_items"),
        (">2</ram:BilledQuantity", ">3</ram:BilledQuantity", "line_items"),
    ],
)
def test_a_change_of_the_xml_is_found(tmp_path, old, new, expected):
    assert old in making.cii()

    found = problems_of(tmp_path, xml=making.cii().replace(old, new))

    assert expected in {field for code, field in found if code in ("differs_from_page", "not_on_page")}, found


def test_both_values_are_in_the_message(tmp_path):
    (problem,) = understood(tmp_path, rows=making.page(**{"04.04.2026": "14.04.2026"})).problems

    assert problem["message"] == (
        "The field Due date is “2026-04-04” in the e-invoice, but the page shows “14.04.2026”."
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("52.92 EUR", "EUR 52,92"),
        ("05.03.2026", "5 March 2026"),
        ("05.03.2026", "March 5th, 2026"),
        ("05.03.2026", "05/03/2026"),
        ("42.92", "42,92-"),
        ("04.04.2026", "4 kwietnia 2026"),
        ("DE136695976", "DE 136 695 976"),
        ("IBAN: DE89 3704 0044 0532 0130 00", "IBAN: DE89370400440532013000"),
        ("Nagel & Söhne GmbH", "NAGEL & SÖHNE GMBH"),
        ("0.0950", "0,10"),
    ],
)
def test_other_formats_are_no_difference(tmp_path, old, new):
    assert problems_of(tmp_path, rows=making.page(**{old: new})) == []


def test_what_the_page_shows_in_addition_is_no_difference(tmp_path):
    rows = (
        *making.PAGE,
        ("Share capital 25,000.00 EUR", "Founded 01.02.1999"),
        ("Another account: FR76 3000 6000 0112 3456 7890 189", "Page 1 of 1"),
        ("Next delivery on 01.06.2026", "Carry-over 49.50"),
    )

    assert problems_of(tmp_path, rows=rows) == []


def test_optional_values_may_be_missing_on_the_page(tmp_path):
    cut = ("Contact: Ada Nagel", "Telephone: +49 421 1234", "E-mail: ada@nagel.example", "Tax number: 60/111/22222")
    rows = tuple(tuple("" if cell in cut else cell for cell in row) for row in making.PAGE)

    assert problems_of(tmp_path, rows=rows) == []


def test_an_invoice_full_of_nonsense_is_understood(tmp_path):
    """Every text of the XML is replaced in turn."""
    xml = making.cii()
    texts = sorted(set(re.findall(r">([^<>\n]+)<", xml)))
    assert len(texts) > 40

    for text in texts:
        found = understood(tmp_path, xml=xml.replace(f">{text}<", ">\u0660,5 -٣ NaN 1e9 %s \\ “<"))

        assert all(isinstance(each["value"], str) for each in found.fields)


def test_an_amount_that_is_no_number_is_a_text(tmp_path):
    found = understood(tmp_path, xml=making.cii().replace(">52.92<", ">about 50<"))

    gross = next(each for each in found.fields if each["name"] == "gross_total")
    assert (gross["kind"], gross["value"]) == ("text", "about 50 EUR")


def test_a_scan_without_text_is_not_compared():
    found = understand(read(making.cii().encode()), [(1, [])])

    assert found.problems == []
    assert found.fields[0]["page"] is None


def test_the_same_value_of_the_recogniser_is_written_as_in_the_e_invoice(tmp_path):
    found = understood(tmp_path, read_by_recogniser=[page_field("seller_address", "Am Markt 1, 28195 Bremen")])

    read_address = found.fields[-1]
    assert (read_address["source"], read_address["value"]) == ("page", "Am Markt 1\n28195 Bremen\nDE")
    assert found.problems == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seller_address", "Am Markt 1, DE 28195 Bremen"),
        ("seller_address", "28195 Bremen"),
        ("seller", "NAGEL & SÖHNE GMBH"),
        ("buyer", "Kranbau Weser AG, Hafenstraße 20"),
        ("payment_terms", "Cash only"),
    ],
)
def test_texts_that_hardly_differ_and_free_texts_are_no_conflict(tmp_path, name, value):
    found = understood(tmp_path, read_by_recogniser=[page_field(name, value)])

    assert found.problems == []
    exact = next(each["value"] for each in found.fields if each["name"] == name)
    assert found.fields[-1]["value"] == exact or found.fields[-1]["confidence"] < 0.5


def test_the_date_from_which_days_count_is_no_due_date(tmp_path):
    rows = making.page(
        **{"Due date: 04.04.2026": "", "Payable within 30 days": "Payable within 30 days from 05.03.2026"}
    )

    assert problems_of(tmp_path, rows=rows) == []


def test_a_mistake_of_the_recogniser_is_no_conflict(tmp_path):
    """The XML explains the wrong value: it is the delivery date."""
    found = understood(tmp_path, read_by_recogniser=[page_field("invoice_date", "2026-03-03", kind="date")])

    assert found.problems == []
    assert found.fields[-1]["confidence"] < 0.5
    assert "which is printed too" in found.fields[-1]["reason"]


def test_a_value_of_the_recogniser_that_the_xml_does_not_explain_is_a_conflict(tmp_path):
    found = understood(tmp_path, read_by_recogniser=[page_field("seller", "Hammer & Amboss KG")])

    assert [(each["code"], each["field"]) for each in found.problems] == [("differs_from_page", "seller")]
    assert found.fields[-1]["confidence"] == 0.95


def test_a_large_invoice_is_compared_in_bounded_time(tmp_path):
    line = making._cii_line(1, "N-10", "Steel nails", "100", "0.0950", "9.50", "19.00")
    xml = making.cii().replace(line, "".join(line.replace("N-10", f"N-{n}") for n in range(3000)))
    words = [[f"word{n}", 0.1, (n % 500) / 500, 0.2, (n % 500) / 500 + 0.001] for n in range(20_000)]

    found = understand(read(xml.encode()), [(1, words)])

    assert 50 <= len(found.problems) <= 150
