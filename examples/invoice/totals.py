"""Finds net, tax and gross totals and their currency."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import product

import amounts
from findings import Finding, Findings, at, best, change, money
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
    candidates = {kind: list(_candidates(labels, kind, decimal_mark)) for kind in KINDS}
    taxes = list(candidates[TAX])
    if len(taxes) > 1 and all(tax.page == taxes[0].page for tax in taxes):
        # An invoice with several rates has them on separate lines.
        total = sum((tax.value for tax in taxes), Decimal())
        around = Box.around(tax.box for tax in taxes if tax.box)
        taxes.append(replace(taxes[0], value=total, box=around, reasons=(f"the sum of {len(taxes)} tax lines",)))
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


def _candidates(labels: Labels, kind: str, decimal_mark: str) -> Iterator[Finding]:
    for label, place in labels.places_of(kind):
        matches = amounts.find(place.text, decimal_mark)
        has_currency = any(amounts.find_currencies(place.text))
        # Whole numbers need a currency. The last amount counts, because the base of a percentage precedes it.
        for match in ([each for each in matches if each.has_cents] or (matches if has_currency else []))[-1:]:
            span = place.start + match.start, place.start + match.end
            total = at(place.line, *span, match.value, 0.8 if label.is_strong else 0.65, place.how)
            yield total.raised(0.2, "written with cents") if match.has_cents else total.lowered(0.3, "without cents")


def _is_beside(currency: Finding, total: Finding | None) -> bool:
    if total is None or total.box is None or currency.box is None or currency.page != total.page:
        return False
    near = currency.box.beside(total.box) < 3 * total.box.height
    return near and abs(currency.box.middle - total.box.middle) < total.box.height / 2
