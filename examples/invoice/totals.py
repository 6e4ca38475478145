"""Finds net, tax and gross totals and their currency."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from itertools import product

import amounts
from findings import Finding, Findings, at, best, change, money
from items import Item, total_of
from labels import Labels
from layout import Box, Layout

NET, TAX, GROSS = KINDS = ("net_total", "tax_total", "gross_total")
# The rounding of various countries.
TOLERANCE = Decimal("0.02")
_EURO_COUNTRIES = frozenset(
    ("AT", "BE", "CY", "DE", "EE", "EL", "ES", "FI", "FR", "GR", "HR", "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PT",
    "SI", "SK")
)  # fmt: skip


def find_totals(labels: Labels, decimal_mark: str) -> Findings:
    """Return net, tax and gross with a correct sum and the highest confidence, otherwise the best of each."""
    candidates: dict[str, list[Finding]] = {kind: [] for kind in KINDS}
    for kind in KINDS:
        for label, place in labels.places_of(kind):
            matches = amounts.find(place.text, decimal_mark)
            has_currency = any(amounts.find_currencies(place.text))
            # Whole numbers need a currency.
            matches = [match for match in matches if match.has_cents] or (matches if has_currency else [])
            if not matches:
                continue
            # The last one, because the base of a percentage precedes it.
            start, end = place.start + matches[-1].start, place.start + matches[-1].end
            total = at(place.line, start, end, matches[-1].value, 0.8 if label.is_strong else 0.65, place.how)
            if matches[-1].has_cents:
                candidates[kind].append(total.raised(0.2, "written with cents"))
            else:
                candidates[kind].append(total.lowered(0.3, "without cents"))
    taxes = list(candidates[TAX])
    if len(taxes) > 1 and all(tax.page == taxes[0].page for tax in taxes):
        # An invoice with several rates has them on separate lines.
        tax_total = sum((tax.value for tax in taxes), Decimal())
        around = Box.around(tax.box for tax in taxes if tax.box)
        taxes.append(replace(taxes[0], value=tax_total, box=around, reasons=(f"the sum of {len(taxes)} tax lines",)))
    triples = [
        (net, tax, gross)
        for net, tax, gross in product(candidates[NET], taxes, candidates[GROSS])
        if abs(net.value + tax.value - gross.value) <= TOLERANCE and gross.value
    ]
    if triples:
        surest = max(triples, key=lambda triple: sum(each.confidence for each in triple))
        return dict(zip(KINDS, surest, strict=True))
    totals = {kind: best(candidates[kind]) for kind in KINDS}
    return {kind: finding for kind, finding in totals.items() if finding}


def check_sum(totals: Findings) -> str:
    """Raise the confidence if net and tax add up to gross, otherwise lower it. Return a message about the result."""
    net, tax, gross = (money(totals, kind) for kind in KINDS)
    if net is None or tax is None or gross is None:
        return "net + tax = gross could not be checked: not all three were found"
    if abs(net + tax - gross) <= TOLERANCE:
        for kind in KINDS:
            change(totals, kind, lambda each: each.raised(0.8, "net + tax = gross"))
        return f"{net} + {tax} = {gross}: the totals add up"
    for kind in KINDS:
        change(totals, kind, lambda each: each.lowered(0.4, f"net + tax is {net + tax}, but gross {gross}"))
    return f"{net} + {tax} = {net + tax}, but the gross total is {gross}"


def check_items(totals: Findings, items: list[Item]) -> str:
    """Raise the confidence of the total that the items add up to, otherwise lower net. Return a message."""
    if not items:
        return "no line items to check the totals with"
    sum_of_items = total_of(items)
    because = f"the line items add up to {sum_of_items}"
    for kind in (NET, GROSS):
        if kind in totals and abs(totals[kind].value - sum_of_items) <= TOLERANCE:
            change(totals, kind, lambda each: each.raised(0.6, because))
            return f"{len(items)} line items add up to {sum_of_items}, the {kind.replace('_', ' ')}"
    change(totals, NET, lambda each: each.lowered(0.2, because))
    return f"{len(items)} line items add up to {sum_of_items}, which is neither the net nor the gross total"


def complete(totals: Findings) -> None:
    """Compute the missing one of net, tax and gross from the other two. It has no place on a page."""
    missing = [kind for kind in KINDS if kind not in totals]
    if len(missing) != 1:
        return
    signs = {NET: (GROSS, -1, TAX), TAX: (GROSS, -1, NET), GROSS: (NET, 1, TAX)}
    first, sign, second = signs[missing[0]]
    value = totals[first].value + sign * totals[second].value
    sureness = min(totals[first].confidence, totals[second].confidence)
    totals[missing[0]] = Finding(value, 0.7 * sureness, (f"computed from {first} and {second}",))


def find_currency(layout: Layout, totals: Findings, countries: Iterable[str]) -> Finding | None:
    currencies = []
    for line in layout.lines:
        for match in amounts.find_currencies(line.text):
            confidence = 0.75 if match.is_sure else 0.6
            because = "written out" if match.is_sure else "a symbol that several currencies share"
            currencies.append(at(line, match.start, match.end, match.code, confidence, because))
    beside = [each.raised(0.7, "next to the total") for each in currencies if _is_beside(each, totals.get(GROSS))]
    if beside:
        return best(beside)
    if currencies:
        values = [each.value for each in currencies]
        return currencies[values.index(max(values, key=values.count))]
    if any(country in _EURO_COUNTRIES for country in countries):
        return Finding(
            "EUR", 0.4, ("no currency is given, but the bank account or VAT id is from a country with euros",)
        )
    return None


def _is_beside(currency: Finding, total: Finding | None) -> bool:
    if total is None or total.box is None or currency.box is None or currency.page != total.page:
        return False
    near = currency.box.beside(total.box) < 3 * total.box.height
    return near and abs(currency.box.middle - total.box.middle) < total.box.height / 2
