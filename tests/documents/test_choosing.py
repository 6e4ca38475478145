"""Choosing among the values of several sources, without a database."""

import pytest

from documents.choosing import choose, normal
from documents.models import DocumentField
from documents.types import BUILT_IN, UNKNOWN, FieldSpec, TypeSpec

INVOICE = BUILT_IN["invoice"]


def value(source, text, confidence=0.9, *, name="invoice_number", kind="number"):
    return DocumentField(name=name, value=text, kind=kind, confidence=confidence, source=source)


def chosen(*rows, spec=INVOICE):
    choose(rows, spec)
    (best,) = (row for row in rows if row.chosen)
    return best


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"page": 1, "e-invoice": 1}, "e-invoice"),
        ({"page": 1, "service": 0.8}, "service"),
        ({"service": 0.99, "sender": 0.8}, "sender"),
        ({"sender": 0.99, "run 3": 0.8}, "run 3"),
        ({"run 3": 0.99, "run 12": 0.8}, "run 12"),
        # A source that is not sure gives way to one that is, and to a surer one.
        ({"service": 0.79, "page": 0.8}, "page"),
        ({"service": 0.5, "page": 0.6}, "page"),
        ({"service": 0.5, "page": 0.5}, "service"),
        # A service that gives no confidence is believed.
        ({"service": None, "page": 1}, "service"),
        ({"something else": 1, "page": 0.8}, "page"),
    ],
)
def test_the_first_sure_source_applies_otherwise_the_surest(values, expected):
    rows = [value(source, source, confidence) for source, confidence in values.items()]

    assert chosen(*rows).source == expected
    assert chosen(*reversed(rows)).source == expected


@pytest.mark.parametrize(
    ("kind", "one", "two", "is_conflict"),
    [
        ("number", "RE-2026 17", "re2026-17", False),
        ("number", "17", "18", True),
        ("amount", "12.00 EUR", "12.0", False),
        ("amount", "12.00 EUR", "12.00 USD", True),
        ("amount", "12.00 EUR", "-12.00 EUR", True),
        ("date", "2026-01-02", "2026-02-01", True),
        ("text", "Lieferant GmbH", "LIEFERANT GMBH, Lieferantenstraße 20", False),
        ("text", "Lieferant GmbH", "Kunden AG Mitte", True),
        ("text", "EUR", "USD", True),
    ],
)
def test_two_sure_sources_conflict_if_their_values_mean_different_things(kind, one, two, is_conflict):
    best = chosen(value("e-invoice", one, 1, kind=kind), value("page", two, kind=kind))

    assert (best.in_conflict, best.to_review) == (is_conflict, is_conflict)


def test_an_unsure_source_and_an_earlier_run_contradict_nobody():
    assert not chosen(value("e-invoice", "17", 1), value("page", "18", 0.7)).in_conflict
    assert not chosen(value("run 2", "17"), value("run 1", "18")).in_conflict


def test_the_page_does_not_contradict_what_a_person_has_shown_on_another_document_of_the_sender():
    assert not chosen(value("sender", "17", 0.85), value("page", "18", 0.95)).in_conflict
    assert chosen(value("sender", "17", 0.85), value("service", "18", 0.95)).in_conflict
    assert chosen(value("sender", "17", 0.79), value("page", "18", 0.78)).in_conflict


def test_the_threshold_of_a_field_comes_before_that_of_its_type():
    fields = [FieldSpec("invoice_number", "number", threshold=0.95), FieldSpec("date", "date")]
    spec = TypeSpec("strict", "Strict", fields, threshold=0.5, is_built_in=False)

    number, date = value("page", "17", 0.94), value("page", "2026-01-02", 0.5, name="date", kind="date")
    choose([number, date], spec)

    assert (number.to_review, date.to_review) == (True, False)


def test_other_labels_are_also_found_and_tax_rates_are_fields_of_invoices():
    grund, rate, found = (value("page", "1", 0.1, name=name) for name in ("grund", "tax_amount_19", "bic"))
    choose([grund, rate, found], INVOICE)
    assert [(row.also_found, row.to_review) for row in (grund, rate, found)] == [
        (True, False),
        (False, True),
        (False, True),
    ]

    choose([grund, rate, found], BUILT_IN["letter"])
    assert [row.also_found for row in (grund, rate, found)] == [True, True, True]

    choose([grund, rate, found], UNKNOWN)
    assert [row.also_found for row in (grund, rate, found)] == [True, False, False]


def test_an_own_type_says_which_form_its_values_have():
    spec = TypeSpec("own", "Own", [FieldSpec("since", "date"), FieldSpec("until", "date")], is_built_in=False)
    rows = [value("page", "2026-01-02", name="since"), value("page", "soon", name="until")]

    problems = choose(rows, spec)

    assert [(problem.code, problem.field) for problem in problems] == [("field_malformed", "until")]
    assert "“soon”" in problems[0].message


def test_required_fields_that_are_missing_or_empty_are_problems():
    rows = [value("page", "17"), value("page", "", name="seller", kind="text")]

    problems = choose(rows, INVOICE)

    assert [problem.field for problem in problems] == ["invoice_date", "seller", "gross_total"]


def test_amounts_with_different_spellings_have_one_normal_form():
    assert normal("1200.50 EUR", "amount") == normal("1200.5", "amount") != normal("1200.05", "amount")
