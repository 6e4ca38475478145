import json

import pytest

from runs import understanding
from tests.examples.running import EXAMPLES, prepare_input, run_prepared, run_read_example
from tests.understanding.drawing import invoices

pytestmark = [pytest.mark.once, pytest.mark.long]

ITEMS = ("quantity", "unit_price", "amount")
VALUES = {
    "invoice_number": "AO-2026-0117",
    "invoice_date": "2026-11-18",
    "due_date": "2026-12-18",
    "seller": "Aldergate Orchards Ltd",
    "iban": "DE89370400440532013000",
    "currency": "EUR",
    "net_total": "79.50 EUR",
    "tax_total": "15.90 EUR",
    "gross_total": "95.40 EUR",
    "tax_base_20": "79.50 EUR",
    "tax_amount_20": "15.90 EUR",
    "payment_terms": "Payable within 30 days, 2 % discount within 10 days",
}
ROWS = [("3", "12.50 EUR", "37.50 EUR"), ("10", "4.20 EUR", "42.00 EUR")]


@pytest.fixture
def run(tmp_path):
    """Run over a document of which ADE has understood these values, some of them changed or, with None, left out."""

    def run(rows=ROWS, type="invoice", confidence=0.95, published=(), **changed):
        work = tmp_path / str(len(list(tmp_path.iterdir()))) / "work"
        work.mkdir(parents=True)
        values = {name: value for name, value in {**VALUES, **changed}.items() if value is not None}
        fields = [{"name": name, "value": value, "confidence": confidence} for name, value in values.items()]
        fields += [{"name": name, "value": value, "source": "run 1"} for name, value in published]
        columns = [{"name": name, "label": name, "kind": "decimal"} for name in ITEMS]
        table = {"name": "line_items", "columns": columns}
        table["rows"] = [[{"text": value, "value": value} for value in row] for row in rows]
        files = understanding.write_digest(work, {"fields": fields, "tables": [table] if rows else []})
        told = {"name": type, "confidence": 0.9} if type else None
        prepare_input(work, "invoice.txt", "An invoice", **files, type=told)
        return run_prepared("invoice", work.parent)

    return run


def checks_of(outcome):
    checks = json.loads(outcome.artifact("invoice.json"))["checks"]
    return {check["check"]: (check["result"], check["detail"]) for check in checks}


def failed(outcome):
    return {name: detail for name, (result, detail) in checks_of(outcome).items() if result == "failed"}


def test_an_invoice_without_mistakes_passes_all_checks(run):
    outcome = run()

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    assert [result for result, _ in checks_of(outcome).values()] == ["passed"] * 6
    assert outcome.value("failed_checks") == 0
    assert outcome.artifacts() == ["checks.csv", "invoice.json", "payment.txt"]


@pytest.mark.parametrize(
    ("changed", "check", "detail"),
    [
        ({"gross_total": "98.40 EUR"}, "net + tax = gross", "79.50 + 15.90 = 95.40; the gross total is 98.40."),
        ({"tax_amount_20": "14.90 EUR"}, "tax rates", "20 % of 79.50 is 15.90, not 14.90."),
        (
            {"due_date": "2026-11-08"},
            "due after the invoice date",
            "The invoice is of 2026-11-18 and due on 2026-11-08.",
        ),
        ({"seller": None}, "required fields", "seller is missing."),
        (
            {"rows": [("3", "12.50 EUR", "36.50 EUR"), ("1", "43.00 EUR", "43.00 EUR")]},
            "quantity × unit price = amount",
            "Row 1: 3 × 12.50 is not 36.50.",
        ),
        ({"rows": ROWS[:1]}, "sum of the line items", "37.50 differs from 79.50 (net total) and 95.40 (gross total)."),
    ],
    ids=["totals", "rates", "dates", "missing", "row", "sum"],
)
def test_a_mistake_fails_its_check_and_says_why(run, changed, check, detail):
    outcome = run(**changed)

    assert failed(outcome) == {check: detail}
    assert outcome.value("failed_checks") == 1
    assert f"{check}: {detail}" in outcome.log


def test_what_cannot_be_checked_has_not_passed(run):
    outcome = run(rows=[], tax_base_20=None, due_date=None, payment_terms=None)

    results = [result for result, _ in checks_of(outcome).values()]
    assert (results.count("not checked"), results.count("failed")) == (4, 0)


def test_required_fields_that_are_not_sure_are_named(run):
    assert "gross_total (0.70) is not sure." in failed(run(confidence=0.7))["required fields"]


@pytest.mark.parametrize("missing", ["net_total", "tax_total", "gross_total"])
def test_a_missing_total_is_computed_and_no_surer_than_the_others(run, missing):
    outcome = run(**{missing: None})

    assert outcome.value(missing) == VALUES[missing]
    assert outcome.fields[missing]["confidence"] == pytest.approx(0.95 * 0.95, abs=0.01)
    assert checks_of(outcome)["net + tax = gross"][0] == "passed"


def test_what_a_run_has_published_is_computed_again(run):
    published = [("gross_total", "90.00 EUR"), ("due_date", "2026-12-01")]

    outcome = run(gross_total=None, due_date=None, published=published)

    assert outcome.value("gross_total") == "95.40 EUR"
    assert outcome.value("due_date") == "2026-12-18"
    assert failed(outcome) == {}


def test_values_that_are_no_numbers_are_not_calculated_with(run):
    outcome = run(net_total="NaN EUR", tax_base_reduced="79.50 EUR", tax_amount_reduced="15.90 EUR")

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    assert outcome.value("net_total") == "79.50 EUR"


def test_the_file_for_programs_has_what_was_computed(run):
    fields = json.loads(run(due_date=None, gross_total=None).artifact("invoice.json"))["fields"]

    expected = {"due_date": "2026-12-18", "gross_total": "95.40 EUR", "discount_date": "2026-11-28"}
    assert {name: fields[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("terms", "until", "total"),
    [
        ("Payable within 30 days, 2 % discount within 10 days", "2026-11-28", "93.49 EUR"),
        ("Zahlbar innerhalb 14 Tagen abzüglich 3 % Skonto, 30 Tage netto", "2026-12-02", "92.54 EUR"),
        ("2,5 % Skonto bei Zahlung innerhalb von 7 Tagen", "2026-11-25", "93.02 EUR"),
        ("#SKONTO#TAGE=14#PROZENT=2.00#", "2026-12-02", "93.49 EUR"),
        ("2 % discount, if paid within 10 days", "2026-11-28", "93.49 EUR"),
        ("2 % d'escompte sous 8 jours", "2026-11-26", "93.49 EUR"),
    ],
)
def test_the_cash_discount_is_computed_from_the_terms(run, terms, until, total):
    outcome = run(payment_terms=terms)

    assert (outcome.value("discount_date"), outcome.value("discounted_total")) == (until, total)
    assert outcome.fields["discount_date"]["confidence"] == 0.95


@pytest.mark.parametrize("terms", ["30 days net", "After 30 days we charge 9 % interest", None])
def test_other_terms_give_no_discount(run, terms):
    assert "discount_date" not in run(payment_terms=terms).fields


def test_the_due_date_is_computed_from_the_terms_if_it_is_not_printed(run):
    printed, computed = run(), run(due_date=None, payment_terms="Zahlbar innert 30 Tagen")

    assert "due_date" not in printed.fields
    assert computed.value("due_date") == "2026-12-18"
    assert checks_of(computed)["due after the invoice date"][0] == "passed"


@pytest.mark.parametrize("terms", ["2 % discount within 10 days", "Payable at once", "Pay in 30 days or in 60 days"])
def test_terms_that_leave_the_due_date_open_give_none(run, terms):
    assert "due_date" not in run(due_date=None, payment_terms=terms).fields


def test_a_transfer_is_prepared_for_the_amount_due(run):
    text = run(due_amount="45.40 EUR", bic="COBADEFFXXX").artifact("payment.txt").decode()

    assert text.split("\n") == [
        *("BCD", "002", "1", "SCT", "COBADEFFXXX", "Aldergate Orchards Ltd", "DE89370400440532013000", "EUR45.40"),
        *("", "", "AO-2026-0117 2026-11-18", ""),
    ]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"iban": None, "seller": None}, "iban and seller missing."),
        ({"currency": "GBP"}, "a SEPA transfer is in euros, not in GBP."),
        ({"due_amount": "0.00 EUR"}, "there is no amount to pay."),
        ({"type": "credit_note"}, "a credit note is paid by the seller."),
    ],
    ids=["iban", "currency", "paid", "credit"],
)
def test_without_what_a_transfer_needs_the_log_says_why(run, changed, reason):
    outcome = run(**changed)

    assert "payment.txt" not in outcome.artifacts()
    assert f"no payment is prepared: {reason}" in outcome.log


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"type": "delivery_note"}, "its type is delivery note. If it is an invoice, change the type"),
        ({"type": None, "invoice_number": None, "gross_total": None}, "has neither an invoice number nor a total."),
    ],
    ids=["type", "fields"],
)
def test_what_is_no_invoice_is_rejected_with_advice(run, changed, reason):
    outcome = run(**changed)

    assert outcome.result["outcome"] == "rejected"
    assert reason in outcome.result["error"]
    assert outcome.all_fields == []


@pytest.mark.parametrize("name", ["invoice.pdf", "letter.txt"])
def test_the_documents_of_the_demo(tmp_path, name):
    outcome = run_read_example("invoice", tmp_path, name, (EXAMPLES / "documents" / name).read_bytes())

    if name == "letter.txt":
        assert outcome.result["outcome"] == "rejected"
        assert "is not an invoice: its type is letter." in outcome.result["error"]
    else:
        assert failed(outcome) == {}
        assert checks_of(outcome)["sum of the line items"] == ("passed", "270.00 is the net total.")
        steps = [event["step"] for event in outcome.events if event["kind"] == "step_succeeded"]
        assert steps == ["read", "complete", "check", "prepare_payment", "report"]


def test_a_scan_whose_text_nobody_could_read_is_rejected(tmp_path):
    outcome = run_read_example("invoice", tmp_path, "scan.pdf", invoices.scanned())

    assert outcome.result["outcome"] == "rejected"
    assert "contains no text that ADE could read" in outcome.result["error"]
