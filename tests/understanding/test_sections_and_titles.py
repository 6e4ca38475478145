import pytest

from ade_understanding.recognition import recognise
from tests.understanding.test_labelled_fields import page_of, placed, said, words_of, written_in

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("title", "number", "day"),
    [
        ("Invoice (380) No. 471102 of 05.03.2018", "471102", "2018-03-05"),
        ("Handelsrechnung (380) Nr. RE-17/2 vom 05.03.2018", "RE-17/2", "2018-03-05"),
        ("Rechnung des Versicherers (575) Nr. 01.234-2018-1 vom 05.03.2018", "01.234-2018-1", "2018-03-05"),
        ("Facture n° F2018/031 du 5 mars 2018", "F2018/031", "2018-03-05"),
        ("Factuur nr. 20180031 van 5 maart 2018", "20180031", "2018-03-05"),
        ("Factura nº A-31 de 5 de marzo de 2018", "A-31", "2018-03-05"),
        ("Fattura n. 31/2018 del 05/03/2018", "31/2018", "2018-03-05"),
        ("Fatura n.º 31/2018 de 05/03/2018", "31/2018", "2018-03-05"),
        ("Faktura nr FV/31/2018 z dnia 5 marca 2018", "FV/31/2018", "2018-03-05"),
    ],
)
def test_a_title_has_the_number_and_the_date(title, number, day):
    found = said(placed((title, 0.1, 0.1), ("Thank you for your order.", 0.1, 0.2)))

    assert (found["invoice_number"], found["invoice_date"]) == (number, day)


SELLER = [
    ("Seller", 0.1, 0.1),
    ("Orchard Tools Ltd", 0.1, 0.115),
    ("9 Kingsway", 0.1, 0.13),
    ("Leeds LS1 4AP", 0.1, 0.145),
    ("VAT no. GB980780684", 0.1, 0.16),
]
BUYER = [
    ("Bill to:", 0.5, 0.1),
    ("Barn Works Ltd", 0.5, 0.115),
    ("14 Orchard Lane", 0.5, 0.13),
    ("London SW1A 2AA", 0.5, 0.145),
    ("VAT no. GB553557881", 0.5, 0.16),
]


def test_sections_say_whose_name_address_and_vat_id_it_is():
    found = said(placed(("Invoice no. 17", 0.1, 0.05), *SELLER, *BUYER))

    assert found["seller"] == "Orchard Tools Ltd"
    assert found["seller_address"] == "9 Kingsway, Leeds LS1 4AP"
    assert found["vat_id"] == "GB980780684"
    assert found["buyer"] == "Barn Works Ltd"
    assert found["buyer_address"] == "14 Orchard Lane, London SW1A 2AA"
    assert found["buyer_vat_id"] == "GB553557881"


def test_seller_and_buyer_are_never_the_same():
    found = said(placed(("Invoice no. 17", 0.1, 0.05), *BUYER, ("Barn Works Ltd", 0.1, 0.9)))

    assert found["buyer"] == "Barn Works Ltd"
    assert found.get("seller") != "Barn Works Ltd"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("for the billing period from 1 May 2026 to 31 May 2026", "2026-05-01", "2026-05-31"),
        ("Leistungszeitraum: 01.05.2026 - 31.05.2026", "2026-05-01", "2026-05-31"),
        ("wird für den Zeitraum vom 01.05.2026 bis zum 31.05.2026 berechnet", "2026-05-01", "2026-05-31"),
    ],
)
def test_a_period_has_two_days(text, start, end):
    found = said(written_in(f"Invoice no. 17\n{text}"))

    assert (found["period_start"], found["period_end"]) == (start, end)


def receipt(*lines):
    texts = [("CIDER SHOP", 0.1, 0.05), ("1 High Street", 0.1, 0.07), ("RECEIPT", 0.1, 0.09)]
    for number, (label, amount) in enumerate(lines):
        texts += [(label, 0.1, 0.15 + 0.02 * number), (amount, 0.7, 0.15 + 0.02 * number)]
    return recognise([page_of("\n".join(text for text, _, _ in texts), words_of(*texts))])


def test_what_was_paid_less_the_change_is_the_total_of_a_receipt():
    understanding = receipt(
        ("Apples", "4.00"), ("Cider", "5.50"), ("TOTAL", "9.50"), ("CASH", "10.00"), ("CHANGE", "0.50")
    )

    (total,) = [field for field in understanding.fields if field["name"] == "gross_total"]
    assert (total["value"], understanding.type["name"]) == ("9.50", "receipt")
    assert "paid less the change" in total["reason"]


def test_the_total_of_a_receipt_is_the_rounded_one():
    understanding = receipt(
        *(("Apples", "4.01"), ("Cider", "5.50"), ("TOTAL", "9.51"), ("ROUNDING", "-0.01"), ("TOTAL ROUNDED", "9.50")),
        *(("CASH", "10.00"), ("CHANGE", "0.50")),
    )

    assert said(understanding.fields)["gross_total"] == "9.50"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("INVOICE\nInvoice no. 17\nTotal due 12.00 EUR", "invoice"),
        ("GUTSCHRIFT\nRechnungsnummer 17\nGesamtbetrag 12,00 EUR", "credit_note"),
        ("Lieferschein\nNr. 17", "delivery_note"),
        ("Bon de commande\nArticle 17", "order"),
        ("Sehr geehrte Frau Lang,\nwir danken.\nMit freundlichen Grüßen", "letter"),
        ("Contrato de arrendamiento\nReunidos las partes en adelante", "contract"),
        ("Wyciąg z rachunku\nSaldo początkowe 1,00\nSaldo końcowe 2,00", "statement"),
        ("A story about a barn.", "other"),
    ],
)
def test_the_type_of_a_document(text, name):
    kind = recognise([page_of(text)]).type

    assert kind["name"] == name
    assert 0 < kind["confidence"] <= 1
    assert kind["reason"].endswith(".")


def test_the_heading_of_an_address_is_no_title():
    address = [("Facturé à", 0.5, 0.1), ("Hôtel du Pont SAS", 0.5, 0.115), ("71000 Mâcon", 0.5, 0.13)]
    texts = [("Facture n° F-118", 0.1, 0.05), *address]

    found = recognise([page_of("\n".join(text for text, _, _ in texts), words_of(*texts))])

    assert found.type["reason"] == "Its title is ‘Facture’."
