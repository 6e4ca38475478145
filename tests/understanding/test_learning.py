"""A lesson is learned from one value of one document, and finds the value on the sender's next document."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_understanding.learning import lessons, spellings
from ade_understanding.learning.layout import MOST_PAGES, MOST_WORDS, sheets_of
from ade_understanding.learning.lessons import document_of, find, is_same, learn, without_wrong_ways
from tests.understanding.printed import invoice, page

NEXT = {
    "number": "4790", "day": "11.04.2026", "total": "88,06", "net": "74,00", "down": 0.13,
}  # fmt: skip


def taught(field, value, kind, pages=None):
    method = learn(document_of(pages or invoice()), field, value, kind)
    # Lessons are stored as JSON.
    return json.loads(json.dumps(method))


@pytest.mark.parametrize(
    ("field", "value", "kind", "expected"),
    [
        ("invoice_number", "4711", "number", "4790"),
        ("invoice_date", "2026-03-05", "date", "2026-04-11"),
        ("invoice_date", "05.03.2026", "date", "11.04.2026"),
        ("gross_total", "1234.56 EUR", "amount", "88.06 EUR"),
        ("gross_total", "1.234,56", "amount", "88.06 EUR"),
        ("net_total", "1037.45 EUR", "amount", "74.00 EUR"),
        ("case", "4711", "text", "4790"),
        ("clerk", "Frau Nord", "text", "Frau Nord"),
        ("recipient", "Anna Beispiel\nMusterweg 7", "text", "Anna Beispiel\nMusterweg 7"),
    ],
)
def test_one_value_teaches_where_the_next_one_is(field, value, kind, expected):
    found = find(document_of(invoice(**NEXT)), taught(field, value, kind))

    assert found.value == expected
    assert found.page == 1
    assert 0.6 < found.quality <= 1


def test_a_value_has_the_place_of_its_words():
    found = find(document_of(invoice(**NEXT)), taught("gross_total", "1234.56 EUR", "amount"))

    assert found.box == [0.7, 0.68, 0.785, 0.692]


def test_what_is_printed_nowhere_teaches_nothing():
    assert learn(document_of(invoice()), "invoice_number", "4712", "number") is None
    assert learn(document_of(invoice()), "gross_total", "about a thousand", "amount") is None
    assert learn(document_of(invoice()), "invoice_number", " ", "number") is None
    assert learn(document_of([]), "invoice_number", "4711", "number") is None


def test_a_place_that_is_empty_gives_nothing():
    method = taught("gross_total", "1234.56 EUR", "amount")
    other = document_of([page((0.1, ("Dear Ms Example", 0.1)), (0.2, ("the apples cost", 0.1), ("12,00", 0.7)))])

    assert find(other, method) is None


def test_the_particulars_of_the_sender_are_found_wherever_they_are_printed():
    method = taught("iban", "DE89370400440532013000", "iban")
    moved = [page((0.1, ("Konto", 0.5), ("DE89 3704 0044 0532 0130 00", 0.7)))]

    assert find(document_of(moved), method).value == "DE89370400440532013000"
    new_account = find(document_of(invoice(iban="DE12 5001 0517 0648 4898 90")), method)
    assert new_account.value == "DE12500105170648489890"


def test_who_receives_the_documents_is_recognised_but_not_kept():
    method = taught("buyer", "Anna Beispiel\nMusterweg 7", "text")
    moved = [page((0.3, ("Anna Beispiel", 0.2)), (0.32, ("Musterweg 7", 0.2)))]

    assert find(document_of(moved), method).value == "Anna Beispiel\nMusterweg 7"
    assert "Anna" not in json.dumps(method)
    assert "beispiel" not in json.dumps(method)


def test_of_several_places_those_count_more_whose_label_fits_the_field():
    both = [page((0.1, ("Rechnungsbetrag", 0.1), ("100,00", 0.5)), (0.2, ("Zahlbetrag", 0.1), ("100,00", 0.5)))]
    later = document_of(
        [page((0.1, ("Rechnungsbetrag", 0.1), ("100,00", 0.5)), (0.2, ("Zahlbetrag", 0.1), ("60,00", 0.5)))]
    )

    due, gross = (taught(name, "100.00", "amount", both) for name in ("due_amount", "gross_total"))

    assert (find(later, due).value, find(later, gross).value) == ("60.00", "100.00")
    assert find(later, due).quality < 1


def test_of_several_values_with_one_label_the_same_one_counted_from_the_end_is_taken():
    def statement(*amounts):
        rows = [(0.1 + 0.05 * n, ("Saldo", 0.1), (each, 0.5)) for n, each in enumerate(amounts)]
        return [page(*rows)]

    method = taught("balance", "3.00", "amount", statement("1,00", "2,00", "3,00"))

    assert find(document_of(statement("5,00", "6,00", "7,00", "8,00")), method).value == "8.00"


def test_numbers_in_labels_differ_and_rates_do_not():
    def totals(first, second, number):
        rows = [(0.1, ("Auftrag", 0.1), (number, 0.3), (first, 0.6)), (0.2, ("MwSt 7 %", 0.1), (second, 0.6))]
        return [page(*rows)]

    method = taught("tax_amount_7", "2.00", "amount", totals("1,00", "2,00", "123456"))

    assert find(document_of(totals("3,00", "4,00", "98765")), method).value == "4.00"


def test_a_number_that_looks_quite_different_is_another_one():
    method = taught("invoice_number", "4711", "number")

    assert find(document_of(invoice(number="Storno-Beleg-2026-000123")), method) is None


def test_a_place_that_gave_a_wrong_value_is_dropped():
    both = [page((0.1, ("Betrag", 0.1), ("100,00", 0.5)), (0.2, ("Rest", 0.1), ("100,00", 0.5)))]
    later = document_of([page((0.1, ("Betrag", 0.1), ("90,00", 0.5)), (0.2, ("Rest", 0.1), ("80,00", 0.5)))])
    method = taught("sum", "100.00", "amount", both)

    better = without_wrong_ways(later, method, "80.00")

    assert [way["left"] for way in method["ways"]] == [["betrag"], ["rest"]]
    assert [way["left"] for way in better["ways"]] == [["rest"]]
    assert without_wrong_ways(later, method, "1.00") == method


def test_a_label_and_its_value_in_one_word_are_two():
    method = taught("invoice_number", "4711", "number", [page((0.1, ("Nr.:4711 vom 05.03.2026", 0.1)))])

    assert find(document_of([page((0.1, ("Nr.:4712 vom 06.03.2026", 0.1)))]), method).value == "4712"


def test_only_the_first_and_last_pages_are_examined_and_of_each_the_first_words():
    pages = [{"number": n, "words": [["x", 0.1, 0.1, 0.2, 0.2]] * (MOST_WORDS + 5)} for n in range(1, 31)]

    sheets = sheets_of(pages)

    assert [sheet.number for sheet in sheets] == [1, 2, 3, 28, 29, 30]
    assert len(sheets) == MOST_PAGES
    assert sum(len(cell.words) for cells in sheets[0].lines for cell in cells) == MOST_WORDS


@given(st.lists(st.integers(10, 99999), min_size=1, max_size=12, unique=True), st.data())
def test_a_lesson_finds_its_own_value_again(numbers, data):
    rows = [(0.05 + 0.05 * n, (f"label {n % 3}", 0.1), (str(each), 0.4)) for n, each in enumerate(numbers)]
    document = document_of([page(*rows)])
    value = str(data.draw(st.sampled_from(numbers)))

    assert find(document, learn(document, "number", value, "number")).value == value


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("1.234,56 EUR", "1234.56"), ("EUR 12.00", "12.00"), ("-8,79", "-8.79"), ("8,79-", "-8.79"),
        ("1 234,50 €", "1234.50"), ("1'234.50", "1234.50"), ("1.234", "1234.00"), ("3,3333", "3.3333"),
    ],
)  # fmt: skip
def test_amounts_are_read_as_they_are_printed(text, normal):
    assert spellings.whole(text, "amount").normal == normal


@pytest.mark.parametrize("text", ["19,00 %", "2018-03-05", "4.5.6", "A12"])
def test_what_is_no_amount_is_not_read_as_one(text):
    assert spellings.whole(text, "amount") is None


@pytest.mark.parametrize(
    "text", ["2026-03-05", "05.03.2026", "5.3.26", "5. März 2026", "5 March 2026", "March 5, 2026", "05/03/2026"]
)
def test_dates_are_read_as_they_are_printed(text):
    assert spellings.whole(text, "date").normal == "2026-03-05"


def test_a_date_may_be_read_with_the_month_first():
    assert [value.normal for value in spellings.dates("03/05/2026")] == ["2026-05-03", "2026-03-05"]
    assert list(spellings.dates("31.02.2026")) == []
    method = taught("date", "2026-03-05", "date", [page((0.1, ("Date", 0.1), ("03/05/2026", 0.3)))])
    assert find(document_of([page((0.1, ("Date", 0.1), ("04/06/2026", 0.3)))]), method).value == "2026-04-06"


def test_spellings_of_one_value_are_the_same():
    assert is_same("1.234,56 EUR", "1234.56", "amount")
    assert is_same("05.03.2026", "2026-03-05", "date")
    assert is_same("DE89 3704", "de893704", "iban")
    assert not is_same("05.03.2026", "soon", "date")
    assert not is_same("1,00", "2,00", "amount")


def test_the_kind_follows_from_the_value_if_the_given_one_does_not_fit():
    kinds = [
        spellings.kind_of(value, kind)
        for value, kind in [
            *(("12,00", "text"), ("RE-1", "text"), ("12", "text"), ("Frau Nord", "text")),
            *(("soon", "date"), ("1.2.26", "")),
        ]
    ]

    assert kinds == ["amount", "number", "number", "text", "text", "date"]
    assert lessons.OWN.isdisjoint(lessons.OFTEN_SAME)
