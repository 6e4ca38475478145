"""Every value of an e-invoice, in every syntax."""

import pytest

from ade_understanding.einvoice import fields
from ade_understanding.einvoice.reading import read
from ade_understanding.vocabulary import LINE_COLUMNS
from tests.einvoice import making

HEADER = {
    "invoice_number": "2026-117",
    "invoice_date": "2026-03-05",
    "due_date": "2026-04-04",
    "delivery_date": "2026-03-03",
    "order_number": "B-88",
    "customer_number": "K-4711",
    "buyer_reference": "04-1-2",
    "seller": "Nagel & Söhne GmbH",
    "seller_address": "Am Markt 1\n28195 Bremen\nDE",
    "seller_global_id": "4000001123452",
    "seller_contact": "Ada Nagel",
    "phone": "+49 421 1234",
    "email": "ada@nagel.example",
    "vat_id": "DE136695976",
    "tax_number": "60/111/22222",
    "buyer": "Kranbau Weser AG",
    "buyer_address": "Hafenstraße 20\n27568 Bremerhaven\nDE",
    "iban": "DE89370400440532013000",
    "bic": "COBADEFFXXX",
    "payment_means": "58",
    "payment_terms": "Payable within 30 days",
    "currency": "EUR",
    "line_total": "49.50 EUR",
    "allowance_total": "1.00 EUR",
    "charge_total": "0.00 EUR",
    "net_total": "48.50 EUR",
    "tax_base_19": "8.50 EUR",
    "tax_amount_19": "1.62 EUR",
    "tax_base_7": "40.00 EUR",
    "tax_amount_7": "2.80 EUR",
    "tax_total": "4.42 EUR",
    "gross_total": "52.92 EUR",
    "prepaid_amount": "10.00 EUR",
    "due_amount": "42.92 EUR",
    "note": "Thank you.",
}
LINES = [
    ["1", "N-10", "Steel nails", "100", "C62", "0.095 EUR", "19", "9.50 EUR"],
    ["2", "H-3", "Hammer, small", "2", "C62", "20.00 EUR", "7", "40.00 EUR"],
]


def values_of(xml):
    return {item.name: item.value for item in fields.items(read(xml.encode()))}


def rows_of(xml, name):
    tables = {table["name"]: table for table in fields.tables(read(xml.encode()))}
    return [[cell["value"] for cell in row] for row in tables[name]["rows"]]


@pytest.mark.parametrize("make", [making.cii, making.zugferd_1, making.ubl])
def test_all_values_of_the_header_are_read(make):
    found = values_of(make())

    assert {name: found.get(name) for name in HEADER} == HEADER
    assert found.keys() - HEADER.keys() <= {"profile", "seller_id", "seller_trading_name"}


@pytest.mark.parametrize("make", [making.cii, making.zugferd_1, making.ubl])
def test_all_tables_are_read(make):
    (table, *_) = fields.tables(read(make().encode()))

    assert [column["name"] for column in table["columns"]] == list(LINE_COLUMNS)
    assert rows_of(make(), "line_items") == LINES
    assert table["rows"][0][4] == {"text": "piece", "value": "C62", "page": None, "box": None}
    assert rows_of(make(), "tax_breakdown") == [
        ["S", "19", "8.50 EUR", "1.62 EUR", ""],
        ["S", "7", "40.00 EUR", "2.80 EUR", ""],
    ]
    assert rows_of(make(), "allowances_and_charges") == [["allowance", "Loyalty", "19", "1.00 EUR"]]


def test_fattura_is_read_with_computed_totals():
    found = values_of(making.fattura())

    assert found == {
        "invoice_number": "2026-117",
        "invoice_date": "2026-03-05",
        "due_date": "2026-04-04",
        "order_number": "B-88",
        "seller": "Alfa SRL",
        "seller_address": "Viale Roma 5\n07100 Sassari SS\nIT",
        "vat_id": "IT01234567890",
        "buyer": "Mario Rossi",
        "buyer_address": "Via Torino 38\n00145 Roma\nIT",
        "buyer_tax_number": "RSSMRA80A01H501U",
        "iban": "IT60X0542811101000000123456",
        "payment_means": "MP05",
        "payment_terms": "TP02",
        "currency": "EUR",
        "net_total": "10.00 EUR",
        "tax_total": "2.20 EUR",
        "gross_total": "12.20 EUR",
        "due_amount": "12.20 EUR",
        "tax_base_22": "10.00 EUR",
        "tax_amount_22": "2.20 EUR",
        "note": "Grazie.",
        "profile": "FPR12",
    }
    reasons = {item.name: item.reason for item in fields.items(read(making.fattura().encode()))}
    assert reasons["gross_total"] == "The sum of amounts in the XML of the e-invoice."
    assert rows_of(making.fattura(), "line_items") == [["1", "", "Chiodi", "100", "", "0.10 EUR", "22", "10.00 EUR"]]


@pytest.mark.parametrize(
    ("xml", "name"),
    [
        (making.cii(), "invoice"),
        (making.cii(code="381"), "credit_note"),
        (making.cii(code="384"), "invoice"),
        (making.ubl(), "invoice"),
        (making.ubl(root="CreditNote", code="381"), "credit_note"),
        (making.fattura(), "invoice"),
        (making.fattura(code="TD04"), "credit_note"),
    ],
)
def test_the_type_follows_from_the_code(xml, name):
    found = fields.type_of(read(xml.encode()))

    assert (found["name"], found["confidence"]) == (name, 1)
    assert "type code" in found["reason"]


def test_every_value_names_the_term_of_the_standard():
    items = {item.name: item for item in fields.items(read(making.cii().encode()))}

    assert items["invoice_number"].reason == "The XML of the e-invoice (BT-1)."
    assert items["iban"].reason == "The XML of the e-invoice (BT-84)."
    assert all(item.reason for item in items.values())


def test_further_accounts_and_due_dates_are_numbered():
    means = "<ram:SpecifiedTradeSettlementPaymentMeans>"
    second = f"""{means}<ram:TypeCode>58</ram:TypeCode><ram:PayeePartyCreditorFinancialAccount>
    <ram:IBANID>FR76 3000 6000 0112 3456 7890 189</ram:IBANID></ram:PayeePartyCreditorFinancialAccount>
    </ram:SpecifiedTradeSettlementPaymentMeans>"""
    terms = """<ram:SpecifiedTradePaymentTerms><ram:DueDateDateTime>
    <udt:DateTimeString format="102">20260504</udt:DateTimeString></ram:DueDateDateTime>
    </ram:SpecifiedTradePaymentTerms>"""
    end = "<ram:SpecifiedTradeSettlementHeaderMonetarySummation>"

    found = values_of(making.cii().replace(means, second + means, 1).replace(end, terms + end, 1))

    assert (found["iban"], found["iban_2"]) == ("FR7630006000011234567890189", making.IBAN)
    assert (found["due_date"], found["due_date_2"]) == ("2026-04-04", "2026-05-04")


def test_categories_of_one_rate_are_added():
    one = "<ram:CategoryCode>S</ram:CategoryCode>\n<ram:RateApplicablePercent>7.00<"
    xml = making.cii().replace(one, one.replace("7.00", "19"))

    found = {item.name: item for item in fields.items(read(xml.encode()))}

    assert found["tax_base_19"].value == "48.50 EUR"
    assert found["tax_base_19"].reason.startswith("The sum of 2 tax categories")


def test_a_second_currency_of_the_tax_has_a_field_of_its_own():
    total = '<ram:TaxTotalAmount currencyID="EUR">4.42</ram:TaxTotalAmount>'
    code = "<ram:InvoiceCurrencyCode>"
    xml = making.cii().replace(total, total + total.replace("EUR", "NOK").replace("4.42", "50"))
    xml = xml.replace(code, f"<ram:TaxCurrencyCode>NOK</ram:TaxCurrencyCode>{code}")

    found = values_of(xml)

    assert (found["tax_total"], found["tax_total_in_tax_currency"]) == ("4.42 EUR", "50.00 NOK")


def test_other_xml_is_no_e_invoice():
    assert read(b"<note>hello</note>") is None
    assert read(b'<Invoice xmlns="urn:example:other"><ID>1</ID></Invoice>') is None
