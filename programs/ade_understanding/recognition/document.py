"""Understands a document from its pages: its fields, its type and its line items."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from ade_understanding.recognition import choosing, scores, sums, types
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.items import to_table
from ade_understanding.recognition.languages import HELPERS
from ade_understanding.recognition.page import PageFindings, analyse

MOST = 500
# Values that are less likely than this are not worth a look.
LEAST = 0.3
# Types of documents that have lines with amounts.
WITH_LINES = frozenset({"invoice", "credit_note", "order", "receipt"})
LABELLED = frozenset({"same", "right", "title", "section"})
ALONE = frozenset({"alone in line", "alone on page"})


class Understanding(NamedTuple):
    fields: list[dict[str, Any]]
    type: dict[str, Any] | None
    # A table in the form of the digest, or None.
    line_items: dict[str, Any] | None


def recognise(pages: Iterable[Mapping[str, Any]]) -> Understanding:
    """Each page has `number`, `text`, `words` with their places, and `tables`; `width` and `height` may be missing."""
    found = [analyse(page) for page in pages]
    kind = types.recognise(found)
    candidates = resolve(found, kind)
    fields = [candidate.to_field() for candidate in chosen(candidates)]
    fields += _others(found, {field["name"] for field in fields})
    return Understanding(fields[:MOST], kind, _lines(found, kind))


def _lines(found: list[PageFindings], kind: dict[str, Any] | None) -> dict[str, Any] | None:
    if kind is None or kind["name"] not in WITH_LINES:
        return None
    return to_table([table for page in found for table in page.items])


def resolve(found: list[PageFindings], kind: dict[str, Any] | None) -> list[Candidate]:
    """Return all candidates of a document with all their signs."""
    candidates = [candidate for page in found for candidate in page.candidates]
    printed = [amount for page in found for amount in page.amounts]
    lines = [line for page in found for line in page.rate_lines]
    _name_dates(candidates, kind["name"] if kind else "other")
    _take_currency(candidates, found)
    cash = _paid_less_change(candidates)
    candidates += sums.paid(candidates, cash)
    candidates = sums.check(candidates, lines, printed)
    candidates += sums.rounded(candidates, cash, is_receipt=bool(cash) or (kind or {}).get("name") == "receipt")
    runs = set().union(*(page.run_sums for page in found))
    in_kind = f"in {kind['name']}" if kind else "in nothing"
    for candidate in candidates:
        if candidate.name in (sums.GROSS, sums.DUE) and sums.value_of(candidate) in cash:
            candidate.signs.add("cash")
        if candidate.name in sums.TOTALS and sums.value_of(candidate) in runs:
            candidate.signs.add("sums up")
        if {"several", "weak"} <= candidate.signs and {"in receipt", "in totals"} & {*candidate.signs, in_kind}:
            # The last line of a table of tax rates, not a total.
            candidate.is_excluded = True
        candidate.signs.add(in_kind)
    _relate(candidates)
    choosing.count_names(candidates, " ".join(page.text for page in found[:3]))
    for candidate in candidates:
        candidate.confidence = scores.rate(candidate)
    choosing.choose(candidates)
    return candidates


def chosen(candidates: list[Candidate], least: float = LEAST) -> list[Candidate]:
    """Return the best candidate of each field, if it is likely enough."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.name in HELPERS or candidate.is_excluded:
            continue
        other = best.get(candidate.name)
        if other is None or other.confidence < candidate.confidence:
            best[candidate.name] = candidate
    for candidate in best.values():
        candidate.confidence = scores.calibrated(candidate.confidence)
    return [candidate for candidate in best.values() if candidate.confidence >= least]


def _others(found: list[PageFindings], names: set[str]) -> list[dict[str, Any]]:
    """Return pairs of label and value that no field belongs to. They promise nothing, so they have no confidence."""
    others: dict[str, Candidate] = {}
    for page in found:
        for candidate in page.others:
            if candidate.name not in names:
                others.setdefault(candidate.name, candidate)
    return [other.to_field() | {"confidence": None} for other in others.values()]


def _name_dates(candidates: list[Candidate], kind: str) -> None:
    """Let a date without a better name be the date of the invoice, in an invoice. Other papers have one at the top, on
    a line of its own, or none.
    """
    if kind in ("invoice", "credit_note"):
        for candidate in candidates:
            if candidate.name == "date":
                candidate.name = "invoice_date"
                candidate.signs.add("any date")
    elif kind == "other":
        for candidate in candidates:
            if candidate.name == "date" and candidate.how == "form":
                candidate.is_excluded = candidate.signs.isdisjoint(ALONE)


def _take_currency(candidates: list[Candidate], found: list[PageFindings]) -> None:
    """Add the currency that amounts are printed with, and give it to amounts without one."""
    counts = Counter(code for page in found for code in page.currencies)
    labelled = [candidate for candidate in candidates if candidate.name == "currency"]
    if not labelled and counts:
        code, count = counts.most_common(1)[0]
        how = "only" if len(counts) == 1 else "form"
        page = next(page.number for page in found if code in page.currencies)
        signs = {"repeated"} if count > 2 else set()
        candidates.append(Candidate("currency", code, "text", page, None, how, "", signs))
    code = labelled[0].value if labelled else (next(iter(counts)) if len(counts) == 1 else "")
    if code:
        for candidate in candidates:
            if candidate.kind == "amount" and " " not in candidate.value:
                candidate.value = f"{candidate.value} {code}"


def _paid_less_change(candidates: list[Candidate]) -> set[Decimal]:
    """Return the totals that follow from what was paid and the change, or from a payment by card."""
    paid = [abs(sums.value_of(each)) for each in candidates if each.name == "tendered"][:10]
    change = {one - other for one in paid for other in paid if one > other > 0}
    return change or {each for each in paid if each > 0}


def _relate(candidates: list[Candidate]) -> None:
    """Set the signs that depend on the other candidates of the same field."""
    by_name: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_name[candidate.name].append(candidate)
    for same in by_name.values():
        # A line with several amounts is the last one of a table.
        labelled = {each.value for each in same if each.how in LABELLED and "several" not in each.signs}
        counts = Counter(each.value for each in same)
        first = min(each.page for each in same)
        for each in same:
            if labelled - {each.value} and "cash" not in each.signs:
                each.signs.add("rivals")
            if each.value in labelled and each.how not in LABELLED:
                each.signs.add("agrees")
            if counts[each.value] > 1:
                each.signs.add("repeated")
            if len(counts) == 1:
                each.signs.add("sole")
            if each.page > first:
                each.signs.add("later page")
