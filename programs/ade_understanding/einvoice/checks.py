"""Checks an e-invoice by the rules of EN 16931 that need no schema: required fields, sums, dates and codes.

The names in brackets, such as BR-CO-10, are the names of the rules in the standard.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal

from ade_understanding.einvoice import codes
from ade_understanding.einvoice.dates import is_day
from ade_understanding.einvoice.model import Amount, Invoice, Line, Party
from ade_understanding.einvoice.problems import Problem
from ade_understanding.einvoice.values import cents, money, plain

# Half a cent: sums must be exact in cents.
EXACT = Decimal("0.005")
# Differences that rounding explains, for one product.
ROUNDED = Decimal("0.02")
# A file with more problems is broken as a whole.
MOST = 50
ZERO, CENT = Decimal(0), Decimal("0.01")
PEPPOL = "urn:fdc:peppol.eu:2017:poacc:billing"


def check(invoice: Invoice) -> list[Problem]:
    found = [
        *_required(invoice),
        *_numbers(invoice),
        *_dates(invoice),
        *_codes(invoice),
        *_sums(invoice),
        *_taxes(invoice),
        *(problem for number, line in enumerate(invoice.lines, 1) for problem in _line(invoice, number, line)),
    ]
    if invoice.others:
        message = (
            f"The file holds {len(invoice.others) + 1} invoices. The fields and lines come from the first, number "
            f"{invoice.texts.get('invoice_number') or 'unknown'}; split the file to process the others."
        )
        found.insert(0, Problem("several_invoices", "", message))
    return found[:MOST]


def _required(invoice: Invoice) -> Iterator[Problem]:
    is_old, is_italian = is_zugferd_1(invoice), invoice.syntax == "FatturaPA"
    has_lines = invoice.has_lines_by_profile
    required: dict[str, tuple[str, object]] = {
        "invoice_number": ("number (BR-02)", invoice.texts.get("invoice_number")),
        "invoice_date": ("date (BR-03)", invoice.dates.get("invoice_date")),
        "currency": ("currency (BR-05)", invoice.currency),
        "seller": ("name of the seller (BR-06)", invoice.seller.name),
        "buyer": ("name of the buyer (BR-07)", invoice.buyer.name),
        "net_total": ("total without tax (BR-13)", invoice.amounts.get("net_total")),
        "gross_total": ("total with tax (BR-14)", invoice.amounts.get("gross_total")),
    }
    if not is_old and not is_italian:
        required["due_amount"] = ("amount due (BR-15)", invoice.amounts.get("due_amount"))
        required["seller_address"] = ("country of the seller (BR-09)", invoice.seller.country)
    if has_lines and not is_old and not is_italian:
        required["buyer_address"] = ("country of the buyer (BR-11)", invoice.buyer.country)
        required["line_total"] = ("sum of the lines (BR-12)", invoice.amounts.get("line_total"))
    if "xrechnung" in invoice.profile.lower():
        required["buyer_reference"] = ("buyer reference (BR-DE-15)", invoice.texts.get("buyer_reference"))
    for name, (what, value) in required.items():
        if not value:
            yield Problem("missing_field", name, f"The e-invoice has no {what}.")
    if not invoice.type_code:
        yield Problem("missing_field", "", "The e-invoice has no code of its type (BR-04).")
    if has_lines and not invoice.lines:
        yield Problem("missing_lines", "", "The e-invoice has no lines (BR-16).")
    if has_lines and not invoice.taxes:
        yield Problem("missing_tax", "tax_total", "The e-invoice has no tax per rate (BR-CO-18).")
    seller = invoice.seller
    is_taxed = any(tax.category == "S" for tax in invoice.taxes)
    if is_taxed and not is_old and not (seller.vat_id or seller.tax_number or invoice.tax_representative.vat_id):
        message = "The e-invoice charges tax, but has neither a VAT id nor a tax number of the seller (BR-S-02)."
        yield Problem("missing_field", "vat_id", message)


def _numbers(invoice: Invoice) -> Iterator[Problem]:
    amounts: list[tuple[str, Amount | None]] = [*invoice.amounts.items()]
    for tax in invoice.taxes:
        amounts += [("net_total", tax.base), ("tax_total", tax.amount), ("tax_total", tax.rate)]
    for name, amount in amounts:
        if amount is None:
            continue
        if amount.value is None:
            yield Problem("bad_number", name, f"The amount “{amount.text}” of the e-invoice is no number.")
        elif amount.currency and invoice.currency not in ("", amount.currency) and name != "tax_total_in_tax_currency":
            message = f"The amount {amount.text} is in {amount.currency}, but the invoice is in {invoice.currency}."
            yield Problem("other_currency", name, message)


def _dates(invoice: Invoice) -> Iterator[Problem]:
    days = {name: day for name, day in invoice.dates.items() if day}
    for name, day in days.items():
        if not is_day(day):
            yield Problem("bad_date", name, f"The date “{day}” of the e-invoice does not exist.")
    issued, due = days.get("invoice_date", ""), days.get("due_date", "")
    if is_day(issued) and is_day(due) and due < issued:
        message = f"The payment is due on {due}, before the date of the invoice, {issued}."
        yield Problem("due_before_issue", "due_date", message)
    start, end = days.get("period_start", ""), days.get("period_end", "")
    if is_day(start) and is_day(end) and end < start:
        yield Problem(
            "period_ends_early", "period_end", f"The period ends on {end}, before it starts on {start} (BR-29)."
        )


def _codes(invoice: Invoice) -> Iterator[Problem]:
    if invoice.type_code and invoice.type_code not in codes.DOCUMENT_TYPES:
        message = f"The e-invoice has the unknown type code “{invoice.type_code}” (BR-CL-01)."
        yield Problem("unknown_document_type", "", message)
    if invoice.currency and invoice.currency not in codes.CURRENCIES:
        message = f"“{invoice.currency}” is no code of a currency (BR-CL-04)."
        yield Problem("unknown_currency", "currency", message)
    parties: dict[str, Party] = {"seller_address": invoice.seller, "buyer_address": invoice.buyer}
    for name, party in parties.items():
        if party.country and party.country not in codes.COUNTRIES:
            yield Problem("unknown_country", name, f"“{party.country}” is no code of a country (BR-CL-14).")
    for name, party in {"vat_id": invoice.seller, "buyer_vat_id": invoice.buyer}.items():
        if party.vat_id and party.vat_id[:2] not in codes.COUNTRIES:
            message = f"The VAT id “{party.vat_id}” does not start with the code of a country (BR-CO-09)."
            yield Problem("bad_vat_id", name, message)
    for category in sorted({each.category for each in invoice.taxes} | {each.tax_category for each in invoice.lines}):
        has_none = not category and invoice.syntax != "FatturaPA"
        if not has_none and not codes.is_tax_category(category, invoice.syntax):
            message = f"“{category}” is no code of a tax category (BR-CL-17)."
            yield Problem("unknown_tax_category", "tax_total", message)


def _sums(invoice: Invoice) -> Iterator[Problem]:
    def total(name: str) -> Decimal:
        return _value(invoice.amounts.get(name))

    def differs(
        code: str, name: str, what: str, sum_: Decimal, rule: str, tolerance: Decimal = EXACT
    ) -> Iterator[Problem]:
        amount = invoice.amounts.get(name)
        if amount and amount.value is not None and abs(amount.value - sum_) > tolerance:
            message = f"{what} {money(sum_)}, but the e-invoice gives {money(amount.value)} {amount.currency} ({rule})."
            yield Problem(code, name, message)

    if any(each.value is None for each in invoice.amounts.values()):
        # A problem names the bad number already.
        return
    lines = [line.amount for line in invoice.lines]
    if lines and all(lines):
        # ZUGFeRD 1 lets lines be rounded one by one.
        tolerance = len(lines) * CENT if is_zugferd_1(invoice) else EXACT
        yield from differs("sum_of_lines", "line_total", "The lines add up to", _sum(lines), "BR-CO-10", tolerance)
    if invoice.allowances and not _are_whole(invoice, is_charge=False):
        allowances = _sum(each.amount for each in invoice.allowances if not each.is_charge)
        yield from differs("sum_of_allowances", "allowance_total", "The allowances add up to", allowances, "BR-CO-11")
    if invoice.allowances and not _are_whole(invoice, is_charge=True):
        charges = _sum(each.amount for each in invoice.allowances if each.is_charge)
        yield from differs("sum_of_charges", "charge_total", "The charges add up to", charges, "BR-CO-12")
    if invoice.syntax != "FatturaPA" and "line_total" in invoice.amounts:
        net = total("line_total") - total("allowance_total") + total("charge_total")
        yield from differs("sum_of_net", "net_total", "Lines, allowances and charges make", net, "BR-CO-13")
    taxes = [each.amount for each in invoice.taxes]
    if taxes and all(taxes):
        yield from differs("sum_of_tax", "tax_total", "The tax of all rates adds up to", _sum(taxes), "BR-CO-14")
    gross = total("net_total") + total("tax_total")
    if invoice.syntax == "FatturaPA":
        gross += total("rounding_amount")
    if "net_total" in invoice.amounts:
        yield from differs("sum_of_gross", "gross_total", "Net total and tax make", gross, "BR-CO-15")
    if invoice.syntax != "FatturaPA" and "gross_total" in invoice.amounts:
        due = total("gross_total") - total("prepaid_amount") + total("rounding_amount")
        what = "Gross total, prepaid and rounding amount make"
        yield from differs("sum_of_due", "due_amount", what, due, "BR-CO-16")


def _taxes(invoice: Invoice) -> Iterator[Problem]:
    bases = _bases(invoice)
    for tax in invoice.taxes:
        if tax.rate is None or not (_is_good(tax.rate) and _is_good(tax.base) and _is_good(tax.amount)):
            continue
        rate, base, amount = _value(tax.rate), _value(tax.base), _value(tax.amount)
        name, wanted = f"{plain(rate)} %", base * rate / 100
        if abs(wanted - amount) > ROUNDED:
            message = (
                f"{name} of {money(base)} are {cents(wanted)}, but the e-invoice gives {money(amount)} (BR-CO-17)."
            )
            yield Problem("tax_of_rate", "tax_total", message)
        if tax.category in codes.WITHOUT_TAX and rate:
            message = f"The tax category {tax.category} is without tax, but its rate is {name}."
            yield Problem("rate_of_category", "tax_total", message)
        sum_ = bases.get((tax.category, rate), ZERO)
        if bases and abs(sum_ - base) > ROUNDED:
            message = (
                f"Lines, allowances and charges of {name} (category {tax.category or 'none'}) make {money(sum_)}, but "
                f"the net amount of this rate is {money(base)} (BR-S-08)."
            )
            yield Problem("base_of_rate", "net_total", message)


def _bases(invoice: Invoice) -> dict[tuple[str, Decimal], Decimal]:
    """Return the sums of lines, allowances and charges by category and rate, or nothing if some are not given."""
    bases: dict[tuple[str, Decimal], Decimal] = defaultdict(Decimal)
    if invoice.syntax == "FatturaPA" or not invoice.lines:
        return {}
    if not all(_are_whole(invoice, is_charge=each) for each in (False, True)):
        return {}
    for line in invoice.lines:
        if not (_is_good(line.tax_rate) and _is_good(line.amount)):
            return {}
        bases[line.tax_category, _value(line.tax_rate)] += _value(line.amount)
    for each in invoice.allowances:
        if not _is_good(each.rate):
            return {}
        sign = 1 if each.is_charge or not _is_signed(invoice) else -1
        bases[each.category, _value(each.rate)] += sign * _value(each.amount)
    return bases


def _is_signed(invoice: Invoice) -> bool:
    """Return False if the program that wrote the invoice negates allowances: -5 in the list, and 5 in the total."""
    listed = _sum(each.amount for each in invoice.allowances if not each.is_charge)
    return not listed or listed != -_value(invoice.amounts.get("allowance_total"))


def _are_whole(invoice: Invoice, *, is_charge: bool) -> bool:
    """Return whether the allowances, or charges, add up to their total."""
    listed = _sum(each.amount for each in invoice.allowances if each.is_charge == is_charge)
    total = _value(invoice.amounts.get("charge_total" if is_charge else "allowance_total"))
    if not is_charge and not _is_signed(invoice):
        listed = -listed
    return abs(listed - total) <= EXACT


def _line(invoice: Invoice, number: int, line: Line) -> Iterator[Problem]:
    name = f"Line {line.position or number}"
    for amount in (line.quantity, line.unit_price, line.price_quantity, line.tax_rate, line.amount):
        if amount is not None and amount.value is None:
            yield Problem("bad_number", "", f"{name}: “{amount.text}” is no number.")
            return
    if invoice.has_lines_by_profile:
        missing = {"description": line.description, "amount": line.amount, "quantity": line.quantity}
        for what, value in missing.items():
            # Italian lines need no quantity.
            if not value and not (what == "quantity" and invoice.syntax == "FatturaPA"):
                yield Problem("missing_in_line", "", f"{name} has no {what}.")
    # Only Peppol asks for this. Elsewhere, prices may be gross and rounded.
    if PEPPOL not in invoice.profile or not (line.quantity and line.unit_price and line.amount):
        return
    price, per = _value(line.unit_price), _value(line.price_quantity) or Decimal(1)
    wanted = _value(line.quantity) * price / per
    wanted += sum((_value(each.amount) * (1 if each.is_charge else -1) for each in line.allowances), ZERO)
    if abs(wanted - _value(line.amount)) > ROUNDED:
        times = f"{plain(_value(line.quantity))} × {money(price)}{f' per {plain(per)}' if per != 1 else ''}"
        message = f"{name}: {times} makes {cents(wanted)}, but its amount is {money(_value(line.amount))} (R120)."
        yield Problem("amount_of_line", "", message)


def is_zugferd_1(invoice: Invoice) -> bool:
    return "CrossIndustryDocument" in invoice.profile


def _is_good(amount: Amount | None) -> bool:
    return amount is not None and amount.value is not None


def _value(amount: Amount | None) -> Decimal:
    return ZERO if amount is None or amount.value is None else amount.value


def _sum(amounts: Iterable[Amount | None]) -> Decimal:
    return sum((_value(each) for each in amounts), ZERO)
