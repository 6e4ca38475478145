"""The modules of the invoice example that do not depend on documents: checksums, dates, amounts."""

import importlib
import sys
from datetime import date
from decimal import Decimal

import pytest

from tests.examples.running import EXAMPLES

pytestmark = [pytest.mark.once, pytest.mark.long]


def module(name):
    sys.path.insert(0, str(EXAMPLES / "invoice"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES / "invoice"))


amounts, checksums, dates = module("amounts"), module("checksums"), module("dates")

# The examples of the IBAN registry, one for each country.
IBANS = [
    "DE89370400440532013000", "AT611904300234573201", "CH9300762011623852957", "FR1420041010050500013M02606",
    "GB82 WEST 1234 5698 7654 32", "NL91ABNA0417164300", "BE68539007547034", "ES9121000418450200051332",
    "IT60X0542811101000000123456", "PL61109010140000071219812874", "SE4550000000058398257466", "NO9386011117947",
]  # fmt: skip
VAT_IDS = [
    "DE136695976", "ATU13585627", "FR40303265045", "NL004495445B01", "NL123456789B13", "GB980780684", "BE0428759497",
    "IT00743110157", "PL8567346215", "DK13585628", "LU15027442", "CHE-107.787.577 MWST",
]  # fmt: skip


@pytest.mark.parametrize("iban", IBANS)
def test_an_iban_checks_itself(iban):
    assert checksums.is_iban(iban)
    digit = iban[-1]
    assert not checksums.is_iban(iban[:-1] + ("0" if digit != "0" else "1"))
    assert not checksums.is_iban(iban[:-1])


@pytest.mark.parametrize("vat_id", VAT_IDS)
def test_a_vat_id_checks_itself(vat_id):
    assert checksums.vat_checksum(vat_id) is True
    place = max(place for place, character in enumerate(vat_id) if character.isdigit() and place < 11)
    wrong = vat_id[:place] + str((int(vat_id[place]) + 1) % 10) + vat_id[place + 1 :]
    assert checksums.vat_checksum(wrong) is False


@pytest.mark.parametrize("vat_id", ["ESB64717838", "SE556703748501", "FRK7399859412", "PT501964843"])
def test_of_other_vat_ids_only_the_form_is_known(vat_id):
    assert checksums.is_vat_format(vat_id)
    assert checksums.vat_checksum(vat_id) is None


@pytest.mark.parametrize("text", ["DE12345678", "XX123456789", "ATU1234567", "INVOICE", ""])
def test_what_is_no_vat_id_has_no_form_of_one(text):
    assert not checksums.is_vat_format(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-18", "18.11.2026", "18. 11. 2026", "18.11.26", "18/11/2026", "11/18/2026", "18-Nov-2026",
        "18 November 2026", "18. November 2026", "18th of November, 2026", "November 18, 2026", "Nov 18 2026",
        "18 novembre 2026", "18 de noviembre de 2026", "den 18. Nov. 2026",
    ],
)  # fmt: skip
def test_a_date_is_read_however_it_is_written(text):
    (found,) = dates.find(text)

    assert found.read(month_first=False) == date(2026, 11, 18)
    assert not found.is_ambiguous


def test_a_date_of_small_numbers_is_open():
    (found,) = dates.find("on 05/06/2026")

    assert found.is_ambiguous
    assert (found.read(month_first=False), found.read(month_first=True)) == (date(2026, 6, 5), date(2026, 5, 6))


@pytest.mark.parametrize(("text", "expected"), [("25/12/2026", False), ("12/25/2026", True), ("05/06/2026", None)])
def test_other_dates_say_what_comes_first(text, expected):
    assert dates.prefers_month_first(f"05/06/2026 and {text}") is expected


@pytest.mark.parametrize(
    "text", ["31.02.2026", "1.190,00", "0351 496 01", "2026", "99/99/2026", "12.13", "192.168.10.1"]
)
def test_what_is_no_date_is_none(text):
    assert dates.find(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234,56", "1234.56"), ("1,234.56", "1234.56"), ("1'234.56", "1234.56"), ("1 234,56 €", "1234.56"),
        ("€1,234.56", "1234.56"), ("EUR 12,00", "12.00"), ("12,00-", "-12.00"), ("-12.00", "-12.00"),
        ("(12.00)", "-12.00"),
        ("-€5.00", "-5.00"), ("119,00EUR", "119.00"), ("Total: 12.50.", "12.50"), ("1.234.567,80", "1234567.80"),
        ("0,99", "0.99"), ("VAT 19% 19.00", "19.00"), ("7 % auf 130,00", "130.00"),
    ],
)  # fmt: skip
def test_an_amount_is_read_with_comma_or_point(text, expected):
    (found,) = amounts.find(text, amounts.decimal_mark(text))

    assert found.value == Decimal(expected)
    assert found.has_cents


@pytest.mark.parametrize("text", ["INV-2026-001", "18.11.2026", "3h", "12.5%", "10kg", "DE89", "2026/17"])
def test_what_is_no_amount_is_none(text):
    assert amounts.find(text, ".") == []


@pytest.mark.parametrize(("mark", "expected"), [(",", "1234"), (".", "1.234")])
def test_the_document_decides_what_could_be_either(mark, expected):
    assert amounts.parse("1.234", mark) == Decimal(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("€ 5", "EUR"),
        ("12 EUR", "EUR"),
        ("zwölf Euro", "EUR"),
        ("$5", "USD"),
        ("US$ 5", "USD"),
        ("£5", "GBP"),
        ("CHF 5", "CHF"),
    ],
)
def test_a_currency_is_known_by_code_symbol_and_word(text, expected):
    assert [found.code for found in amounts.find_currencies(text)] == [expected]


@pytest.mark.parametrize("text", ["please try", "EUROPE", "neuro", "CHFX"])
def test_no_currency_is_seen_in_other_words(text):
    assert list(amounts.find_currencies(text)) == []
