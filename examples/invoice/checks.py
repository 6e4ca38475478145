"""The checks of an invoice. Each passes, fails, or cannot be made because something is missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from invoice import GROSS, NET, TAX, Invoice

# Sums are rounded differently in different countries.
TOLERANCE = Decimal("0.02")
NEEDED = ("invoice_number", "invoice_date", "seller", GROSS)
SURE_FROM = 0.8


@dataclass(frozen=True)
class Check:
    name: str
    # None if the check could not be made.
    passed: bool | None
    detail: str

    @property
    def result(self) -> str:
        return {True: "passed", False: "failed", None: "not checked"}[self.passed]


def all_of(invoice: Invoice) -> Iterator[Check]:
    yield totals(invoice)
    yield tax_rates(invoice)
    yield items_multiply(invoice)
    yield items_add_up(invoice)
    yield dates(invoice)
    yield sureness(invoice)


def totals(invoice: Invoice) -> Check:
    name = "net + tax = gross"
    net, tax, gross = (invoice.amount(each) for each in (NET, TAX, GROSS))
    if net is None or tax is None or gross is None:
        return Check(name, None, "Not all three totals are known.")
    return Check(name, _equal(net + tax, gross), f"{net} + {tax} = {net + tax}; the gross total is {gross}.")


def tax_rates(invoice: Invoice) -> Check:
    name = "tax rates"
    rates = invoice.tax_rates()
    if not rates:
        return Check(name, None, "No tax rate is known with its amounts.")
    wrong = [
        f"{rate} % of {base} is {base * rate / 100:.2f}, not {tax}."
        for rate, (base, tax) in rates.items()
        if not _equal(base * rate / 100, tax)
    ]
    return Check(name, not wrong, " ".join(wrong) or f"{len(rates)} of {len(rates)} are right.")


def items_multiply(invoice: Invoice) -> Check:
    name = "quantity × unit price = amount"
    right, wrong = 0, []
    for item in invoice.items:
        if item.quantity is not None and item.unit_price is not None and item.amount is not None:
            product = item.quantity * item.unit_price
            if _equal(product, item.amount):
                right += 1
            else:
                wrong.append(f"Row {item.row}: {item.quantity} × {item.unit_price} is not {item.amount}.")
    if not right and not wrong:
        return Check(name, None, "No line item has all three.")
    return Check(name, not wrong, " ".join(wrong) or f"{right} of {len(invoice.items)} line items are right.")


def items_add_up(invoice: Invoice) -> Check:
    name = "sum of the line items"
    amounts = [item.amount for item in invoice.items if item.amount is not None]
    known = {each: value for each in (NET, GROSS) if (value := invoice.amount(each)) is not None}
    if not amounts or len(amounts) < len(invoice.items) or not known:
        return Check(name, None, "Not all amounts of the line items are known, or no total.")
    total = sum(amounts, Decimal())
    for each, value in known.items():
        if _equal(total, value):
            return Check(name, True, f"{total} is the {each.replace('_', ' ')}.")
    others = " and ".join(f"{value} ({each.replace('_', ' ')})" for each, value in known.items())
    return Check(name, False, f"{total} differs from {others}.")


def dates(invoice: Invoice) -> Check:
    name = "due after the invoice date"
    issued, due = invoice.day("invoice_date"), invoice.day("due_date")
    if issued is None or due is None:
        return Check(name, None, "Not both dates are known.")
    return Check(name, issued <= due, f"The invoice is of {issued} and due on {due}.")


def sureness(invoice: Invoice) -> Check:
    missing = [each for each in NEEDED if not invoice.text(each)]
    surenesses = {each: invoice.confidence(each) for each in NEEDED if each not in missing}
    unsure = [f"{each} ({sure:.2f})" for each, sure in surenesses.items() if sure < SURE_FROM]
    problems = [f"{each} is missing." for each in missing] + [f"{each} is not sure." for each in unsure]
    return Check("required fields", not problems, " ".join(problems) or "All are there and sure.")


def _equal(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= TOLERANCE
