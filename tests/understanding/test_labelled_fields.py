import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_understanding.recognition import document, ids, recognise
from ade_understanding.recognition.labelled import LONGEST_VALUE
from ade_understanding.recognition.labels import name_of
from tests import effort
from tests.extractor.extracting import CSV, PDF, extract, written
from tests.extractor.pdfs import pdf_of

pytestmark = [pytest.mark.once, pytest.mark.long]

WIDE, HIGH, SPACE = 0.008, 0.012, 0.004
SURE = 0.9


def words_of(*placed):
    """Return words as the PDF reader returns them; each text begins at its position, in shares of the page."""
    words = []
    for text, left, top in placed:
        for word in text.split():
            right = left + WIDE * len(word)
            words.append([word, round(left, 4), round(top, 4), round(right, 4), round(top + HIGH, 4)])
            left = right + SPACE
    return words


def page_of(text, words=(), tables=(), number=1):
    return {"number": number, "text": text, "words": list(words), "tables": list(tables)}


def fields_of(*pages):
    return recognise(pages).fields


def placed(*texts):
    return fields_of(page_of("\n".join(text for text, _, _ in texts), words_of(*texts)))


def written_in(text):
    return fields_of(page_of(text))


def said(found):
    return {field["name"]: field["value"] for field in found}


def sureness(found):
    return {field["name"]: field["confidence"] for field in found}


def of_kind(found, kind):
    return [field for field in found if field["kind"] == kind]


ENGLISH = """Aldergate Ltd, 14 Orchard Lane
Invoice No.: AO-2026-0117
Invoice date: 18 November 2026
Due date: 2 December 2026
Customer no. 30417
Subtotal £270.00
VAT 20 % £54.00
Total due: £ 324.00
VAT no. GB980780684
IBAN GB82 WEST 1234 5698 7654 32, cider@aldergate.example"""

GERMAN = """Rechnungs-Nr.: RE 2026-117
Rechnungsdatum: 18.11.2026
Fällig am: 2. Dezember 2026
Kundennummer: 4711
Nettobetrag 1.270,00 €
zzgl. 19 % MwSt. 241,30 €
Gesamtbetrag: 1.511,30 EUR
USt-IdNr.: DE136695976
IBAN: DE89 3704 0044 0532 0130 00
BIC: COBADEFFXXX
Telefon: +49 (30) 123456-0"""


def test_an_english_invoice():
    assert said(written_in(ENGLISH)) == {
        "invoice_number": "AO-2026-0117",
        "invoice_date": "2026-11-18",
        "due_date": "2026-12-02",
        "customer_number": "30417",
        "net_total": "270.00 GBP",
        "tax_total": "54.00 GBP",
        "tax_base_20": "270.00 GBP",
        "tax_amount_20": "54.00 GBP",
        "gross_total": "324.00 GBP",
        "due_amount": "324.00 GBP",
        "currency": "GBP",
        "seller": "Aldergate Ltd",
        "vat_id": "GB980780684",
        "iban": "GB82WEST12345698765432",
        "email": "cider@aldergate.example",
    }


def test_a_german_invoice():
    assert said(written_in(GERMAN)) == {
        "invoice_number": "RE 2026-117",
        "invoice_date": "2026-11-18",
        "due_date": "2026-12-02",
        "customer_number": "4711",
        "net_total": "1270.00 EUR",
        "tax_total": "241.30 EUR",
        "tax_base_19": "1270.00 EUR",
        "tax_amount_19": "241.30 EUR",
        "gross_total": "1511.30 EUR",
        "due_amount": "1511.30 EUR",
        "currency": "EUR",
        "vat_id": "DE136695976",
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "phone": "+49 (30) 123456-0",
    }


def test_what_adds_up_is_surer_than_what_does_not():
    right = sureness(written_in(ENGLISH))
    wrong = sureness(written_in(ENGLISH.replace("324.00", "325.00")))

    for name in ("gross_total", "due_amount"):
        assert right[name] >= SURE > wrong.get(name, 0), name


def test_other_pairs_of_label_and_value_promise_nothing():
    (other,) = [field for field in written_in(f"{ENGLISH}\nRemarks: none") if field.get("other")]

    assert (other["name"], other["value"], other["confidence"]) == ("remarks", "none", None)


def test_each_field_says_why():
    reasons = {field["name"]: field["reason"] for field in written_in(GERMAN)}

    assert reasons["customer_number"] == "After the label ‘Kundennummer’."
    assert reasons["net_total"] == "After the label ‘Nettobetrag’; the amounts add up with it."
    assert reasons["iban"] == "After the label ‘IBAN’; its check digits are right."


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2026-11-18", "2026-11-18"),
        ("18.11.2026", "2026-11-18"),
        ("8. 1. 2026", "2026-01-08"),
        ("18.11.26", "2026-11-18"),
        ("18. November 2026", "2026-11-18"),
        ("3. März 2026", "2026-03-03"),
        ("18th of November 2026", "2026-11-18"),
        ("18 Nov 2026", "2026-11-18"),
        ("18-Nov-2026", "2026-11-18"),
        ("November 18, 2026", "2026-11-18"),
        ("Nov. 18th, 2026", "2026-11-18"),
        ("11/18/2026", "2026-11-18"),
        ("18/11/2026", "2026-11-18"),
        ("2026/11/18", "2026-11-18"),
    ],
)
def test_dates_however_they_are_written(written, iso):
    assert said(written_in(f"Invoice number: 4711\nDate: {written}"))["invoice_date"] == iso


@pytest.mark.parametrize("text", ["31.02.2026", "2026-13-01", "10.0.0.1", "1.2.3.2026.5", "18.11.1066", "99/99/9999"])
def test_what_is_no_day_is_no_date(text):
    assert "date" not in {field["kind"] for field in written_in(f"Datum: {text}")}


def test_a_date_that_may_be_two_days_is_less_sure_and_others_decide():
    alone = written_in("Invoice no. 4711\nDue date: 03/04/2026")
    american = written_in("Invoice no. 4711\nInvoice date: 03/24/2026\nDue date: 03/04/2026")
    british = written_in("Invoice no. 4711\nInvoice date: 24/03/2026\nDue date: 03/04/2026")

    assert said(alone)["due_date"] == said(british)["due_date"] == "2026-04-03"
    assert said(american)["due_date"] == "2026-03-04"
    reasons = [each["reason"] for found in (alone, american, british) for each in found if each["name"] == "due_date"]
    assert ["it may be another day" in reason for reason in reasons] == [True, False, False]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.234,56 €", "1234.56 EUR"),
        ("EUR 1,234.56", "1234.56 EUR"),
        ("$1,234.56", "1234.56 USD"),
        ("US$ 12.00", "12.00 USD"),
        ("1'234.50 CHF", "1234.50 CHF"),
        ("1 234,56 EUR", "1234.56 EUR"),
        ("1\u00a0234\u00a0567,89 EUR", "1234567.89 EUR"),
        ("12 Euro", "12.00 EUR"),
        ("1.234 €", "1234.00 EUR"),
        ("-12,50 €", "-12.50 EUR"),
        ("12,50- EUR", "-12.50 EUR"),
        ("(12.50)", "-12.50"),
        ("12,50", "12.50"),
    ],
)
def test_amounts_however_they_are_written(written, value):
    assert said(written_in(f"Invoice no. 4711\nGrand total: {written}"))["gross_total"] == value


@pytest.mark.parametrize("text", ["3 hours", "20 %", "10kg", "18.11.2026", "12.30.45", "1234567890123456.00"])
def test_other_numbers_are_no_amounts(text):
    assert not of_kind(written_in(f"Invoice no. 4711\nTotal {text}"), "amount")


def test_an_amount_takes_the_only_currency_of_its_page():
    assert said(written_in("Invoice 17\nAll prices in EUR\nGrand total: 12,50"))["gross_total"] == "12.50 EUR"
    assert said(written_in("Invoice 17\nEUR or USD\nGrand total: 12,50"))["gross_total"] == "12.50"


cents = st.integers(0, 10**11)
LAYOUTS = {
    "german": lambda text: text.replace(",", "_").replace(".", ",").replace("_", "."),
    "english": str,
    "swiss": lambda text: text.replace(",", "'"),
    "french": lambda text: text.replace(",", " ").replace(".", ","),
    "plain": lambda text: text.replace(",", ""),
}


@given(cents, st.sampled_from(sorted(LAYOUTS)), st.booleans())
def test_an_amount_is_what_was_written_in_any_layout(cents, layout, is_negative):
    amount = Decimal(cents) / 100 * (-1 if is_negative else 1)
    text = LAYOUTS[layout](f"{amount:,.2f}")

    found = said(written_in(f"Invoice no. 4711\nGrand total: {text} EUR"))

    assert Decimal(found["gross_total"].removesuffix(" EUR")) == amount


def iban_of(country, account):
    digits = "".join(str(int(character, 36)) for character in f"{account}{country}00")
    return f"{country}{98 - int(digits) % 97:02}{account}"


countries = st.sampled_from(
    ["AT", "BE", "CH", "DE", "DK", "EE", "ES", "FI", "HU", "LT", "LU", "NO", "PL", "PT", "SE", "SI", "SK"]
)


@given(countries.flatmap(lambda c: st.tuples(st.just(c), st.integers(0, 10 ** ((ids.iban_length(c) or 0) - 4) - 1))))
def test_every_iban_is_found_wherever_its_spaces_are(account):
    country, number = account
    iban = iban_of(country, f"{number:0{ids.iban_length(country) - 4}}")
    spaced = " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))

    for text in (f"Pay to {iban} soon", f"IBAN: {spaced}", f"Bank {spaced} BIC COBADEFF"):
        (field,) = of_kind(written_in(f"Invoice no. 4711\n{text}"), "iban")
        assert (field["name"], field["value"]) == ("iban", iban)


@given(st.integers(0, 10**18 - 1), st.integers(4, 21), st.integers(1, 9))
def test_an_iban_with_one_other_digit_does_not_hold(number, place, by):
    iban = iban_of("DE", f"{number:018}")
    other = iban[:place] + str((int(iban[place]) + by) % 10) + iban[place + 1 :]

    assert ids.is_iban(iban)
    assert not ids.is_iban(other)
    assert not of_kind(written_in(f"Invoice no. 4711\nno label {other} here"), "iban")
    (doubted,) = of_kind(written_in(f"Invoice no. 4711\nIBAN: {other}"), "iban")
    assert "check digits are wrong" in doubted["reason"]


@pytest.mark.parametrize(
    ("vat_id", "check_digits"),
    [
        ("DE136695976", "right"),
        ("DE 136 695 976", "right"),
        ("ATU13585627", "right"),
        ("NL004495445B01", "right"),
        ("FR40303265045", "right"),
        ("CHE-116.281.710", "right"),
        ("ESX9999999X", "wrong"),
        ("DE136695977", "wrong"),
    ],
)
def test_vat_ids(vat_id, check_digits):
    (field,) = of_kind(written_in(f"Invoice no. 4711\nVAT No: {vat_id}"), "vat_id")

    plain = vat_id.replace(" ", "").replace("-", "").replace(".", "")
    assert (field["name"], field["value"]) == ("vat_id", plain)
    assert f"check digits are {check_digits}" in field["reason"]


def test_an_id_that_begins_within_another_is_found():
    assert (
        said(written_in("Invoice 17\nDE136695976 IBAN DE89 3704 0044 0532 0130 00"))["iban"] == "DE89370400440532013000"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Straße und Größe", "strasse_und_groesse"),
        ("Fällig-Datum (neu):", "faellig_datum_neu"),
        ("Prénom", "prenom"),
        ("№ 12", "no_12"),
        ("Ø-Preis", "oe_preis"),
        ("日本", ""),
        ("a" * 200, "a" * 100),
    ],
)
def test_the_name_of_a_label(text, name):
    assert name_of(text) == name


def test_an_unknown_label_gives_its_name_and_the_type_of_what_it_says():
    found = written_in("Grund der Prüfung: Wasser im Keller\nGeprüft am: 3. März 2026\nSelbstbehalt: 150,00 €")

    others = [field for field in found if field.get("other")]
    assert [(field["name"], field["kind"], field["value"]) for field in others] == [
        ("grund_der_pruefung", "text", "Wasser im Keller"),
        ("geprueft_am", "date", "2026-03-03"),
        ("selbstbehalt", "amount", "150.00 EUR"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "he said: we shall come",
        "see https://example.com/a:b for more",
        "at 12:30 we eat",
        "Total recall was a film",
        "Order 66 was executed by somebody",
        "This is a long sentence that has far too many words before its: colon",
        "Empty:",
        "::::",
        "Summary\n- one\n- two",
    ],
)
def test_a_sentence_is_no_field(text):
    assert written_in(text) == []


def test_several_labels_in_one_line():
    assert said(written_in("Invoice No: 4711 Date: 18.11.2026 Customer: 30417")) == {
        "invoice_number": "4711",
        "invoice_date": "2026-11-18",
        "customer_number": "30417",
    }
    found = said(written_in("Invoice 17\nTel. 030 1234567 · Fax 030 1234568 · E-Mail: a@example.com"))
    assert (found["phone"], found["fax"], found["email"]) == ("030 1234567", "030 1234568", "a@example.com")


def test_values_in_a_column_beside_their_labels_however_far():
    found = placed(
        ("Invoice no.", 0.1, 0.1),
        ("Due date", 0.1, 0.12),
        ("Project", 0.1, 0.14),
        ("Colour:", 0.1, 0.16),
        # The file has the column of values after the column of labels.
        ("AO-17", 0.6, 0.1),
        ("2 December 2026", 0.6, 0.121),
        ("Barn", 0.6, 0.14),
        ("light green", 0.6, 0.16),
    )

    assert said(found) == {"invoice_number": "AO-17", "due_date": "2026-12-02", "colour": "light green"}


def test_values_below_their_labels():
    found = placed(
        ("Invoice no.", 0.1, 0.1),
        ("Due date", 0.4, 0.1),
        ("AO-17", 0.1, 0.12),
        ("2026-12-02", 0.4, 0.12),
    )

    assert said(found) == {"invoice_number": "AO-17", "due_date": "2026-12-02"}


def test_a_row_of_labels_above_their_values():
    heads, below = ["Invoice #", "Date", "Total", "Due"], ["INV-7781", "18.11.2026", "EUR 12.00", "2.12.2026"]
    found = placed(
        *((text, 0.1 + 0.2 * x, 0.1 + 0.02 * y) for y, row in enumerate((heads, below)) for x, text in enumerate(row))
    )

    assert said(found) == {
        "invoice_number": "INV-7781",
        "invoice_date": "2026-11-18",
        "gross_total": "12.00 EUR",
        "due_amount": "12.00 EUR",
        "due_date": "2026-12-02",
        "currency": "EUR",
    }


def test_the_currency_and_the_base_of_an_amount_belong_to_its_label():
    found = placed(
        ("Rechnung Nr. 4711", 0.1, 0.07),
        ("Nettobetrag", 0.1, 0.09),
        ("48,00 EUR", 0.8, 0.09),
        ("MwSt 19 % auf 48,00 EUR", 0.1, 0.11),
        ("9,12 EUR", 0.8, 0.11),
        ("Gesamtbetrag EUR", 0.1, 0.13),
        ("57,12", 0.8, 0.13),
    )

    amounts = {
        "net_total": "48.00 EUR",
        "tax_total": "9.12 EUR",
        "tax_base_19": "48.00 EUR",
        "tax_amount_19": "9.12 EUR",
        "gross_total": "57.12 EUR",
    }
    assert said(found) | amounts == said(found)


def test_something_may_follow_what_shows_what_it_is():
    found = said(
        written_in("Rechnung 17\nTel. 03643 778812, Fax 03643 778813\nIBAN AT61 1904 3002 3457 3201, BIC BKAUATWW")
    )

    assert (found["phone"], found["iban"], found["bic"]) == ("03643 778812", "AT611904300234573201", "BKAUATWW")


def test_an_unknown_label_may_stand_before_an_id():
    (other,) = [field for field in written_in("Your partner: DE136695976") if field.get("other")]

    assert (other["name"], other["kind"], other["value"]) == ("your_partner", "vat_id", "DE136695976")


def test_other_numbers_behind_labels_are_no_phone_numbers():
    assert not of_kind(written_in("Invoice no. 4711\nReg. 30112233"), "phone")


def test_the_date_of_a_letter_is_the_one_that_stands_alone():
    letter = (
        "Mira Aldergate\nOld Mill, den 18. November 2026\nDear Ann,\nYour letter of 6 November 2026 has come.\n"
        "Yours sincerely\nMira"
    )

    assert said(written_in(letter))["date"] == "2026-11-18"
    assert written_in("On 1.1.2026 and 2.2.2026 it rained.") == []


def test_the_heads_of_a_table_are_no_labels():
    rows = [("Order no.", "Delivery date"), ("A-1", "2026-12-02"), ("A-2", "2026-12-03"), ("A-3", "2026-12-04")]
    found = placed(*((text, 0.1 + 0.3 * x, 0.1 + 0.02 * y) for y, row in enumerate(rows) for x, text in enumerate(row)))

    assert found == []
    assert written_in("\n".join("\t".join(row) for row in rows)) == []


def test_a_line_of_a_table_with_a_share_before_its_amount():
    found = placed(("Invoice 17", 0.1, 0.08), ("VAT", 0.1, 0.1), ("20 %", 0.4, 0.1), ("54.00 EUR", 0.7, 0.1))

    assert said(found)["tax_total"] == "54.00 EUR"


def test_rows_of_tables_that_the_text_does_not_have_as_lines():
    table = {"box": None, "rows": [["Invoice\nnumber", "AO-17"], ["Due date", "2026-12-02"]]}
    as_text = "Invoice\nnumber\tAO-17\nDue date\t2026-12-02"

    for text in (as_text, ""):
        found = said(fields_of(page_of(text, tables=[table])))
        assert (found["invoice_number"], found["due_date"]) == ("AO-17", "2026-12-02")


def test_the_box_lies_over_the_words_of_the_value():
    words = words_of(
        ("Invoice 17", 0.1, 0.05), ("Due date: 2 December 2026 (firm)", 0.1, 0.1), ("Remark:", 0.1, 0.2)
    ) + words_of(("all is well", 0.5, 0.201))

    found = {field["name"]: field for field in fields_of(page_of("", words, number=3))}

    due = found["due_date"]
    assert (due["value"], due["page"], due["source"]) == ("2026-12-02", 3, "page")
    assert covered(due["box"], words) == ["2", "December", "2026"]
    assert covered(found["remark"]["box"], words) == ["all", "is", "well"]


def covered(box, words):
    left, top, right, bottom = box
    return [w[0] for w in words if left <= w[1] and w[3] <= right and top <= w[2] and w[4] <= bottom]


def test_a_real_pdf_has_its_fields_where_they_stand(tmp_path):
    (page,) = extract(pdf_of(tmp_path / "a.pdf", ENGLISH.replace("£", "GBP ")), PDF).pages

    found = fields_of(page)

    assert said(found)["gross_total"] == "324.00 GBP"
    boxes = {field["name"]: covered(field["box"], page["words"]) for field in found if field["box"]}
    assert boxes["invoice_number"] == ["AO-2026-0117"]
    assert boxes["iban"] == ["GB82", "WEST", "1234", "5698", "7654", "32,"]


def test_formats_without_places_have_no_boxes(tmp_path):
    (page,) = extract(written(tmp_path / "a.csv", "Invoice no;AO-17\nDue date;2.12.2026\nNote:;paid"), CSV).pages

    found = fields_of(page)

    assert said(found) == {"invoice_number": "AO-17", "due_date": "2026-12-02", "note": "paid"}
    assert [field["box"] for field in found] == [None] * 3


def test_totals_are_checked_over_pages():
    pages = ["Invoice 17\nSubtotal 100.00 EUR", "VAT 19.00 EUR\nSubtotal 90.00 EUR", "Total due 119.00 EUR"]

    found = {field["name"]: field for field in fields_of(*(page_of(text, number=n) for n, text in enumerate(pages, 1)))}

    totals = [found[name] for name in ("net_total", "tax_total", "gross_total")]
    assert [field["value"] for field in totals] == ["100.00 EUR", "19.00 EUR", "119.00 EUR"]
    assert [field["page"] for field in totals] == [1, 2, 3]
    assert all("add up" in field["reason"] for field in totals)


def test_the_taxes_of_two_rates_are_added_up():
    text = "Invoice 17\nNet total 200.00 EUR\nVAT 7 % 7.00 EUR\nVAT 19 % 19.00 EUR\nTotal due 226.00 EUR"

    found = said(written_in(text))

    assert (found["net_total"], found["tax_total"], found["gross_total"]) == ("200.00 EUR", "26.00 EUR", "226.00 EUR")
    assert (found["tax_amount_7"], found["tax_amount_19"]) == ("7.00 EUR", "19.00 EUR")


def test_what_is_prepaid_is_taken_off_what_is_due():
    text = "Invoice 17\nNet total 100.00\nVAT 19.00\nGrand total 119.00 EUR\nDeposit -19.00\nAmount due 100.00 EUR"

    found = said(written_in(text))

    assert (found["gross_total"], found["prepaid_amount"]) == ("119.00 EUR", "19.00 EUR")
    assert found["due_amount"] == "100.00 EUR"


def test_what_was_found_is_json_and_the_same_each_time():
    words = words_of(*((line, 0.1, 0.05 + 0.02 * number) for number, line in enumerate(GERMAN.splitlines())))

    found = fields_of(page_of(GERMAN, words))

    assert found == fields_of(page_of(GERMAN, json.loads(json.dumps(words))))
    assert json.loads(json.dumps(found)) == found


# fmt: off
HOSTILE = {
    "colons": "a: " * 350_000, "digits": "1" * 1_000_000, "groups": "1,111" * 200_000,
    "spaced groups": "111 " * 250_000,
    "dates": "1.1.20 " * 150_000, "lines": "A:b\n" * 250_000, "labels": "Total: 1.00 EUR\n" * 65_000,
    "capitals": "DE89" * 250_000, "ats": "a@" * 500_000, "dots": "a@b." + "c." * 500_000, "tabs": "\t" * 1_000_000,
    "words": "Invoice No " * 90_000, "currencies": "€" * 1_000_000, "brackets": "(" * 1_000_000,
    "spaces": " " * 1_000_000,
    "phones": "+1 (" * 250_000, "umlauts": "Äö-" * 330_000, "labels in line": "Invoice No: 1 " * 71_000,
    "dated": "Date " + "1.1.20 " * 150_000, "total": "Total " + "1.00 EUR " * 120_000, "id": "IBAN " + "DE1 " * 250_000,
    "slashes": "1/1/" * 250_000, "months": "1 January " * 100_000, "vat": "ATU 1" * 200_000, "nul": "\0" * 1_000_000,
}
# fmt: on


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_no_long_time_and_gives_no_flood(text):
    words = [[word, 0.1, 0.1, 0.2, 0.2] for word in text.split()[:200_000]]

    for some in ([], words):
        started = time.process_time()
        found = fields_of(page_of(text, some))

        assert effort.since(started) < 2
        assert len(found) <= document.MOST
        assert all(len(field["value"]) <= LONGEST_VALUE and len(field["name"]) <= 100 for field in found)


@given(st.text(max_size=300), st.lists(st.lists(st.text(max_size=20), max_size=4), max_size=4))
def test_no_text_makes_it_fail(text, rows):
    found = fields_of(page_of(text, tables=[{"rows": rows}]))

    assert all(field["name"].isascii() and field["name"] and field["value"] for field in found)


shares = st.floats(0, 1)


@given(st.lists(st.tuples(st.sampled_from(["Total:", "12,00", "€", "Due", "date", "·", "2026-01-02"]), *[shares] * 4)))
def test_no_place_makes_it_fail(words):
    for field in fields_of(page_of("", [list(word) for word in words])):
        assert field["box"] is None or len(field["box"]) == 4


def test_an_ordinary_page_takes_no_time():
    lines = [
        " ".join(["lorem", "ipsum", "dolor", "sit", "amet,", "consetetur", "Sadipscing", "elitr", "sed", "diam"])
    ] * 29
    lines += ["Date: 18.11.2026"]
    words = words_of(*((line, 0.1, 0.05 + 0.02 * number) for number, line in enumerate(lines)))
    text = "\n".join(lines)

    fastest = min(timed(lambda: fields_of(page_of(text, words))) for _ in range(50))

    # It takes 3 milliseconds on an idle machine.
    assert fastest < 0.015


def timed(act):
    started = time.process_time()
    act()
    return time.process_time() - started
