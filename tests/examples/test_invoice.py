import json
import re

import pytest

from tests.examples import invoices
from tests.examples.running import EXAMPLES, run_example

pytestmark = [pytest.mark.once, pytest.mark.long]

TEXT = """\
Aldergate Orchards Ltd                                    INVOICE
14 Orchard Lane
Little Wendover LW1 2AB                  Invoice no.:   AO-2026-0117
VAT no. {vat_id}                      Invoice date:  {date}
                                         Customer no.:  30417
Bill to:
Fennimore & Daughters

Description                 Qty    Unit price     Amount
Apples, box                   3         12.50      37.50
Cider, bottle                10          4.20      42.00
 dry, 0.75 l

                             Net total             79.50
                             VAT 20 %              15.90
                             Total due          £  {total}

Payable within 14 days. IBAN {iban}
"""
RIGHT = {"vat_id": "GB980780684", "date": "18/11/2026", "total": "95.40", "iban": invoices.IBAN_GB}


ITALIAN = f"""\
FATTURA n. 118/2026                              Roma, 18 novembre 2026

Officina Bellini S.r.l.                          Spett.le
Via Appia 12                                     Hotel Aurora S.p.A.
00183 Roma                                       Corso Italia 4
P. IVA IT00743110157                             20122 Milano

Descrizione               Quantità    Prezzo     Importo
Riparazione caldaia              1    350,00      350,00
Ricambi                          2     75,00      150,00

Imponibile                                        500,00
IVA 22%                                           110,00
Totale fattura                                  € 610,00
Scadenza: 18/12/2026
IBAN {invoices.IBAN_IT}
"""


@pytest.fixture
def run(tmp_path):
    def run(content, name="invoice.txt", **told):
        return run_example("invoice", tmp_path / str(len(list(tmp_path.iterdir()))), name, content, **told)

    return run


def test_a_text_is_read_without_places(run):
    outcome = run(TEXT.format(**RIGHT))

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    expected = {
        "invoice_number": "AO-2026-0117",
        "invoice_date": "2026-11-18",
        "due_date": "2026-12-02",
        "gross_total": "95.40",
    }
    assert {name: outcome.value(name) for name in expected} == expected
    assert all(field["page"] is None and field["box"] is None for field in outcome.all_fields)
    assert b'"Cider, bottle dry, 0.75 l",10,' in outcome.artifact("line_items.csv")


def test_a_text_in_two_columns_is_read(run):
    outcome = run(ITALIAN)

    expected = {
        "invoice_number": "118/2026", "invoice_date": "2026-11-18", "due_date": "2026-12-18", "gross_total": "610.00",
        "currency": "EUR", "seller_name": "Officina Bellini S.r.l.", "buyer_name": "Hotel Aurora S.p.A.",
        "seller_vat_id": "IT00743110157", "line_items": 2,
    }  # fmt: skip
    assert {name: outcome.value(name) for name in expected} == expected, outcome.log


def test_a_total_that_does_not_add_up_is_less_sure(run):
    right, wrong = run(TEXT.format(**RIGHT)), run(TEXT.format(**RIGHT | {"total": "98.40"}))

    assert wrong.value("gross_total") == "98.40"
    assert wrong.fields["gross_total"]["confidence"] < 0.6 < 0.9 < right.fields["gross_total"]["confidence"]
    assert "net + tax is 95.40, but gross 98.40" in wrong.artifact("explanation.txt").decode()


def test_a_date_that_could_be_another_is_less_sure(run):
    clear, ambiguous = run(TEXT.format(**RIGHT)), run(TEXT.format(**RIGHT | {"date": "05/06/2026"}))

    assert ambiguous.value("invoice_date") == "2026-06-05"
    assert ambiguous.fields["invoice_date"]["confidence"] < 0.6 < clear.fields["invoice_date"]["confidence"]


def test_a_wrong_checksum_is_less_sure(run):
    outcome = run(TEXT.format(**RIGHT | {"iban": "GB83 WEST 1234 5698 7654 32", "vat_id": "GB980780685"}))

    assert outcome.fields["iban"]["confidence"] < 0.3
    assert outcome.fields["seller_vat_id"]["confidence"] < 0.3


def test_the_invoice_is_told_to_programs_too(run):
    told = json.loads(run(TEXT.format(**RIGHT)).artifact("invoice.json"))

    assert {"name": "currency", "value": "GBP"}.items() <= next(
        e for e in told["fields"] if e["name"] == "currency"
    ).items()
    assert [line["amount"] for line in told["line_items"]] == ["37.50", "42.00"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Only three words", "its 3 words contain neither an invoice number nor a total."),
        ("Score\n\nTotal: 12.50", "words contain a total, but no invoice number and none of the words invoice"),
        ("  \n ", "(text/plain) contains no text."),
    ],
)
def test_what_is_no_invoice_is_rejected_with_a_reason(run, content, reason):
    outcome = run(content)

    assert outcome.result["outcome"] == "rejected"
    assert reason in outcome.result["error"]
    assert outcome.all_fields == []


def test_a_letter_is_rejected(run):
    assert run((EXAMPLES / "documents" / "letter.txt").read_bytes()).result["outcome"] == "rejected"


def test_a_scan_is_rejected_with_advice(run):
    outcome = run(invoices.scanned(), "scan.pdf")

    assert outcome.result["outcome"] == "rejected"
    assert "it was probably scanned. Run text recognition (OCR)" in outcome.result["error"]


def test_of_a_scan_the_recognized_text_is_read(run):
    outcome = run(invoices.scanned(), "scan.pdf", text=TEXT.format(**RIGHT))

    assert outcome.value("invoice_number") == "AO-2026-0117"
    assert outcome.fields["invoice_number"]["page"] is None


@pytest.mark.parametrize("content", [b"%PDF-1.7 and then nothing", b"", b"\x00\x01"])
def test_a_broken_pdf_is_rejected(run, content):
    outcome = run(content, "invoice.pdf")

    assert outcome.result["outcome"] == "rejected"
    assert "the file cannot be opened as a PDF" in outcome.result["error"]


def test_the_sample_is_read_without_a_doubt(run):
    outcome = run((EXAMPLES / "documents" / "invoice.pdf").read_bytes(), "invoice.pdf")

    expected = {
        "invoice_number": "AO-2026-0117", "invoice_date": "2026-11-18", "due_date": "2026-12-02",
        "gross_total": "324.00", "net_total": "270.00", "tax_total": "54.00",
        "currency": "GBP", "seller_name": "Aldergate Orchards Ltd",
        "buyer_name": "Fennimore & Daughters", "iban": "GB82WEST12345698765432", "line_items": 4,
    }  # fmt: skip
    assert {name: outcome.value(name) for name in expected} == expected
    assert all(field["confidence"] > 0.7 for name, field in outcome.fields.items() if name != "line_items")


def test_the_steps_say_how_far_they_are(run):
    outcome = run(invoices.two_pages(), "invoice.pdf")

    assert [event["done"] for event in outcome.events if event["kind"] == "progress"][-1] == 2
    steps = [event["step"] for event in outcome.events if event["kind"] == "step_succeeded"]
    assert steps == ["read", "find_number_and_dates", "find_parties", "find_totals", "find_items", "check", "report"]
    assert any(re.match(r"invoice_number = 77120 \(0\.\d\d on page 1\): ", message) for message in outcome.log)
