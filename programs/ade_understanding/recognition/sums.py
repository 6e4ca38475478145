"""Finds the amounts of a document that add up: net and tax to gross, gross less what is prepaid to what is due."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import NamedTuple

from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.rates import TOLERANCE, Amount, RateLine, parse
from ade_understanding.recognition.rows import around
from ade_understanding.vocabulary import TAX_AMOUNT, TAX_BASE, rate_name

NET, TAX, GROSS, DUE, PREPAID = "net_total", "tax_total", "gross_total", "due_amount", "prepaid_amount"
TOTALS = (NET, TAX, GROSS, DUE, PREPAID)
# Candidates per name. A normal document has two or three.
_MOST = 12


class _Sum(NamedTuple):
    net: Candidate
    tax: Candidate | None
    gross: Candidate
    rank: float


def value_of(candidate: Candidate) -> Decimal:
    return parse(candidate.value)[0]


def check(
    candidates: list[Candidate], lines: Sequence[RateLine], printed: Sequence[tuple[Amount, int]]
) -> list[Candidate]:
    """Return the candidates with those that follow from others. Sets the signs of amounts that add up, or do not."""
    totals = {name: _distinct(each for each in candidates if each.name == name) for name in TOTALS}
    rates = _rates(lines, totals)
    found: list[Candidate] = []
    tax_of_rates = _total_of_rates(rates, totals)
    if tax_of_rates is not None:
        totals[TAX] = [*totals[TAX], tax_of_rates]
        found.append(tax_of_rates)
    roundings = [Decimal(), *(value_of(each) for each in candidates if each.name == "rounding")][:4]
    grosses = [*totals[GROSS], *totals[DUE]]
    best = max(_sums(totals, roundings), key=lambda each: each.rank, default=None)
    if best is None:
        best = _with_printed(totals, printed, found)
    if best is None and all(totals[name] for name in (NET, TAX)) and grosses:
        for each in candidates:
            if each.name in TOTALS:
                each.signs.add("adds_up_not")
    if best is not None:
        _confirm(best, [*candidates, *found])
        if best.gross.name != GROSS:
            found.append(_copy(best.gross, GROSS, set(best.gross.signs)))
    found += _due(totals, best, found)
    found += _of_rates(rates, best)
    return [*candidates, *found]


def paid(candidates: list[Candidate], cash: set[Decimal]) -> list[Candidate]:
    """Return totals with a label such as "Net total", which are what was paid less the change."""
    return [
        _copy(each, GROSS, {*each.signs, "derived"})
        for each in candidates
        if each.name == NET and value_of(each) in cash
    ]


def rounded(candidates: list[Candidate], cash: set[Decimal], *, is_receipt: bool) -> list[Candidate]:
    """Mark totals before and after they were rounded, and return what was paid if it is printed nowhere.

    The total of a receipt is the rounded one. On an invoice, only the amount due is rounded.
    """
    roundings = {value_of(each) for each in candidates if each.name == "rounding" and 0 < abs(value_of(each)) < 1}
    totals = [each for each in candidates if each.name in (GROSS, DUE)]
    values = {value_of(each) for each in totals}
    more = []
    for each in totals:
        after = {value_of(each) + rounding for rounding in roundings}
        near = {value_of(each) + sign * rounding for rounding in roundings for sign in (1, -1)}
        # The sign of a rounding is not always printed.
        is_paid = value_of(each) in cash
        if not is_paid and (near & cash or after & values):
            each.signs.add("not rounded")
        elif near & values and (is_paid or {value_of(each) - rounding for rounding in roundings} & values):
            each.signs.add("rounded")
        if is_receipt and "not rounded" in each.signs:
            each.signs.discard("adds_up")
        if (paid := after & cash - values) and len(paid) == 1:
            value = f"{paid.pop():.2f} {parse(each.value)[1]}".strip()
            more.append(Candidate(each.name, value, "amount", each.page, None, "sum", each.label, {"cash", "rounded"}))
    return more


def _distinct(candidates: Iterator[Candidate]) -> list[Candidate]:
    """Return one candidate per value: the one with the most reliable label."""
    best: dict[Decimal, Candidate] = {}
    for each in candidates:
        other = best.get(value_of(each))
        if other is None or _rank(each) > _rank(other):
            best[value_of(each)] = each
    return sorted(best.values(), key=_rank, reverse=True)[:_MOST]


def _rank(candidate: Candidate) -> float:
    """Return how much a label says before anything is added up."""
    rank = {"same": 3.0, "right": 3.0, "below": 2.0}.get(candidate.how, 1.0)
    rank -= 1.5 if "weak" in candidate.signs else 0
    rank += 0.5 if "last" in candidate.signs else 0
    return rank


def _sums(totals: dict[str, list[Candidate]], roundings: Sequence[Decimal]) -> Iterator[_Sum]:
    # The largest amount with a label for a net amount may be the total.
    grosses = [*totals[GROSS], *totals[DUE], *totals[NET]]
    for net, tax, gross in product(totals[NET], totals[TAX], grosses):
        n, t, g = value_of(net), value_of(tax), value_of(gross)
        if gross.name == NET and not t:
            continue
        if g and any(abs(n + t + each - g) <= TOLERANCE for each in roundings) and abs(t) < abs(n):
            rank = _rank(net) + _rank(tax) + _rank(gross) + (1 if t else -2) + (1 if gross.name == GROSS else 0)
            yield _Sum(net, tax, gross, rank + 4)


def _with_printed(
    totals: dict[str, list[Candidate]], printed: Sequence[tuple[Amount, int]], found: list[Candidate]
) -> _Sum | None:
    """Return a sum of two labelled amounts and one that is printed anywhere."""
    values = {amount.value: (amount, page) for amount, page in printed}
    grosses = [*totals[GROSS], *totals[DUE]]
    for tax, gross in product(totals[TAX], grosses):
        net = value_of(gross) - value_of(tax)
        if value_of(tax) and net in values and 0 < abs(value_of(tax)) < abs(net) * Decimal("0.35"):
            each = _printed(NET, *values[net])
            found.append(each)
            return _Sum(each, tax, gross, 1)
    for net_candidate, tax in product(totals[NET], totals[TAX]):
        total = value_of(net_candidate) + value_of(tax)
        if value_of(tax) and total in values and abs(value_of(tax)) < abs(value_of(net_candidate)) * Decimal("0.35"):
            each = _printed(GROSS, *values[total])
            found.append(each)
            return _Sum(net_candidate, tax, each, 1)
    for net_candidate, gross in product(totals[NET], grosses):
        tax_value = value_of(gross) - value_of(net_candidate)
        if tax_value in values and 0 < abs(tax_value) < abs(value_of(net_candidate)) * Decimal("0.35"):
            each = _printed(TAX, *values[tax_value])
            found.append(each)
            return _Sum(net_candidate, each, gross, 1)
    return None


def _printed(name: str, amount: Amount, page: int) -> Candidate:
    value = f"{amount.value:.2f} {amount.currency}".strip()
    return Candidate(name, value, "amount", page, amount.place.box, "sum", "", {"printed"})


def _confirm(best: _Sum, candidates: Sequence[Candidate]) -> None:
    chosen = {NET: best.net, TAX: best.tax, GROSS: best.gross}
    for each in candidates:
        if (other := chosen.get(each.name)) is not None:
            each.signs.add("adds_up" if value_of(each) == value_of(other) else "adds_up_not")
    for confirmed in chosen.values():
        if confirmed is not None:
            confirmed.signs.add("adds_up")
            confirmed.signs.discard("adds_up_not")


def _copy(candidate: Candidate, name: str, signs: set[str]) -> Candidate:
    return Candidate(
        name, candidate.value, "amount", candidate.page, candidate.box, candidate.how, candidate.label, signs
    )


def _due(totals: dict[str, list[Candidate]], best: _Sum | None, found: list[Candidate]) -> list[Candidate]:
    """Check the amount due, or derive it: without a payment, it is the total, and the total is what is due."""
    grosses = [best.gross] if best else totals[GROSS]
    more: list[Candidate] = []
    prepaid = [value_of(each) for each in totals[PREPAID]]
    for due in totals[DUE]:
        for gross in grosses:
            paid = [each for each in prepaid if abs(value_of(gross) - abs(each) - value_of(due)) <= TOLERANCE]
            if paid or value_of(due) == value_of(gross):
                due.signs.add("adds_up")
                for each in totals[PREPAID]:
                    if value_of(each) in paid:
                        each.signs.add("adds_up")
    is_prepaid = any(prepaid)
    if not totals[DUE] and not is_prepaid:
        ranked = sorted(grosses, key=_rank, reverse=True)
        more += [_copy(gross, DUE, {*gross.signs, "derived"}) for gross in ranked[:3]]
    has_gross = bool(totals[GROSS]) or any(each.name == GROSS for each in found)
    if totals[DUE] and not has_gross and not is_prepaid and best is None:
        more += [_copy(due, GROSS, {*due.signs, "derived"}) for due in totals[DUE]]
    return more


def _rates(lines: Sequence[RateLine], totals: dict[str, list[Candidate]]) -> list[RateLine]:
    """Return one line per rate: those that together make the tax of the document, otherwise the last ones."""
    by_rate: dict[Decimal, list[RateLine]] = {}
    for line in lines:
        if line.is_named:
            by_rate.setdefault(line.rate.normalize(), []).append(line)
    choices = []
    for same in by_rate.values():
        different = {(line.base and line.base.value, line.tax.value): line for line in reversed(same)}
        choices.append(list(different.values())[:4])
    if not choices or len(choices) > 4:
        return []
    taxes = {value_of(each) for each in totals[TAX]}
    differences = {value_of(gross) - value_of(net) for gross in [*totals[GROSS], *totals[DUE]] for net in totals[NET]}
    for chosen in product(*choices):
        total = sum((line.tax.value for line in chosen), Decimal())
        if total in differences or total in taxes:
            return list(chosen)
    for line in lines:
        if line.is_named and line.tax.value in taxes | differences:
            return [line]
    with_base = ([line for line in same if line.base is not None] for same in choices)
    return [same[0] for same in with_base if same]


def _total_of_rates(rates: list[RateLine], totals: dict[str, list[Candidate]]) -> Candidate | None:
    if not rates:
        return None
    total = sum((line.tax.value for line in rates), Decimal())
    if any(value_of(each) == total for each in totals[TAX]):
        return None
    first = rates[0].tax
    boxes = [["", *line.tax.place.box] for line in rates if line.tax.place.box and line.page == rates[0].page]
    value = f"{total:.2f} {first.currency}".strip()
    how = "rates" if len(rates) == 1 else "sum"
    return Candidate(TAX, value, "amount", rates[0].page, around(boxes), how, rates[0].text)


def _of_rates(rates: list[RateLine], best: _Sum | None) -> Iterator[Candidate]:
    """Yield the base and the tax of each rate."""
    total = sum((line.tax.value for line in rates), Decimal())
    adds_up = best is not None and best.tax is not None and abs(value_of(best.tax) - total) <= TOLERANCE
    signs = {"adds_up"} if adds_up else set()
    for line in rates:
        rate = f"{line.rate:f}"
        parts = [(TAX_AMOUNT, line.tax), (TAX_BASE, line.base)]
        if line.base is None and adds_up and best is not None and len(rates) == 1:
            yield _copy_of_net(rate, best.net)
        for prefix, amount in parts:
            if amount is not None:
                value = f"{amount.value:.2f} {amount.currency}".strip()
                more = signs | ({"base"} if line.base is not None else set())
                yield Candidate(
                    rate_name(prefix, rate), value, "amount", line.page, amount.place.box, "rates", line.text, more
                )


def _copy_of_net(rate: str, net: Candidate) -> Candidate:
    return _copy(net, rate_name(TAX_BASE, rate), {"adds_up", "derived"})
