"""Compares an e-invoice with its pages: where each value is printed, and what differs.

A value of the page contradicts the XML only if the XML explains it nowhere: no element has it, and no text mentions it.
Otherwise a mistake of the recogniser, or the number of another thing, would raise an alarm.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from ade_understanding.einvoice import fields
from ade_understanding.einvoice.fields import Item
from ade_understanding.einvoice.labels import LABELS, is_label
from ade_understanding.einvoice.model import Invoice, number
from ade_understanding.einvoice.printed import Place, Printed, compacted, dates_in, numbers_in
from ade_understanding.einvoice.problems import Problem
from ade_understanding.vocabulary import TAX_AMOUNT, TAX_BASE

SOURCE = "e-invoice"
NOT_ON_PAGE, DIFFERS = "not_on_page", "differs_from_page"
# Values that every page of an invoice shows. Others are only missing if the page shows something else instead.
_EXPECTED = frozenset(
    {"invoice_number", "invoice_date", "seller", "buyer", "net_total", "tax_total", "gross_total", "due_amount"}
    | {"prepaid_amount", "iban"}
)
# What describes the file, and long texts.
_NOT_COMPARED = frozenset(
    {"profile", "business_process", "note", "currency", "tax_currency", "payment_means", "seller_legal_information"}
    | {"seller_electronic_address", "buyer_electronic_address", "buyer_reference", "tax_total_in_tax_currency"}
)
# Texts of which the recogniser may take any part.
FREE_TEXTS = frozenset({"payment_terms"})
_TOTALS = ("line_total", "allowance_total", "net_total", "tax_total", "gross_total", "due_amount")
# As many totals in one row make it the row of the totals.
_FEWEST_TOTALS = 3
# The confidence from which a value of the recogniser counts.
SURE = 0.5
# The confidence of a value of the recogniser that the page's e-invoice contradicts.
UNSURE = 0.3
# Words before a value that may be its label.
_CONTEXT_WORDS = 7
# Identifiers as long as this are misread or changed if they differ in so many characters.
_SHORTEST_ID, _CHANGED = 5, 2
# The length of amounts from 1000.00 on.
_LONG_AMOUNT = 7
# An identifier: a word with a digit, or capitals only.
_ID = re.compile(r"[\w./-]*\d[\w./-]*|[A-Z]{8,11}")
# Characters after a label in which its identifier begins.
_AFTER_LABEL = 40


def numbers_of(leaves: Sequence[str]) -> set[Decimal]:
    """Return all numbers that texts of the XML mention, without their signs."""
    exact = (number(leaf) for leaf in leaves)
    found = {abs(each.value) for each in exact if each and each.value is not None}
    return found | {value for value, *_ in numbers_in(" \n ".join(leaves))}


class Explained:
    """What the XML mentions anywhere."""

    def __init__(self, invoice: Invoice) -> None:
        text = " \n ".join(invoice.leaves)
        self.numbers = numbers_of(invoice.leaves)
        self.dates = {day for day, *_ in dates_in(text)} | {day for day in invoice.dates.values() if day}
        self.compact = compacted(text)
        # Whole texts only. A remark may repeat an identifier that was changed elsewhere.
        self.ids = {compacted(leaf) for leaf in invoice.leaves}

    def has(self, kind: str, value: str) -> bool:
        if kind in ("amount", "decimal"):
            return any(each in self.numbers for each, *_ in numbers_in(value))
        return value in self.dates if kind == "date" else compacted(value) in self.compact


def unexplained(printed: Printed, numbers: set[Decimal]) -> dict[Decimal, list[Place]]:
    """Return the printed numbers that are not among these, however they are read."""
    known = {place.key for number in numbers for place in printed.numbers.get(number, ())}
    others = {value: [place for place in places if place.key not in known] for value, places in printed.numbers.items()}
    return {value: places for value, places in others.items() if places}


class Located(NamedTuple):
    item: Item
    place: Place | None


class Header:
    """Finds and compares the fields of the header."""

    def __init__(self, invoice: Invoice, printed: Printed, page_fields: Sequence[dict[str, Any]]) -> None:
        self.invoice, self.printed = invoice, printed
        self.explained = Explained(invoice)
        self.unexplained = unexplained(printed, self.explained.numbers)
        self.page_fields = {each["name"]: each for each in page_fields}
        self.items = fields.items(invoice)
        self.located = {item.name: Located(item, best(item.name, self.places(item))) for item in self.items}

    def places(self, item: Item) -> list[Place]:
        if item.kind != "text" or "\n" not in item.value:
            places = self.printed.find(item.kind, item.value)
            # Zeros are everywhere.
            return [place for place in places if _labelled(item.name, place)] if _is_zero(item) else places
        found = [self.printed.find("text", line) for line in _lines(item.value)]
        return [places[0] for places in found if places] if all(found) else []

    def problems(self) -> list[Problem]:
        found = [*self._currency()]
        for item, place in self.located.values():
            if item.name in _NOT_COMPARED or item.name in self.invoice.computed or _is_zero(item):
                continue
            if problem := self._compare(item, place):
                found.append(problem)
        named = {problem.field for problem in found}
        more = [*self._changed_amounts(), *self._rows_of_totals()]
        return [*found, *(problem for problem in more if problem.field not in named)]

    def _changed_amounts(self) -> Iterator[Problem]:
        """Yield amounts of the page that differ in one digit from one of the e-invoice."""
        amounts = [item for item in self.items if item.kind == "amount"]
        uses = Counter(item.value for item in amounts)
        for value, places in self.unexplained.items():
            if not is_money(places[0]):
                continue
            digits = f"{value:.2f}"
            for item in amounts:
                other = item.value.partition(" ")[0].lstrip("-")
                if len(digits) != len(other) or sum(map(str.__ne__, digits, other)) != 1:
                    continue
                # Smaller amounts are alike by chance, unless the page lacks one that belongs to several fields.
                lacks_one = len(self.printed.find("amount", item.value)) < uses[item.value]
                if len(digits) >= _LONG_AMOUNT or (len(digits) == _LONG_AMOUNT - 1 and lacks_one):
                    yield _differs(item, f"the page shows “{places[0].words[-1][0]}”")
                    break

    def _rows_of_totals(self) -> Iterator[Problem]:
        """Yield totals of which the row that shows at least three others shows another amount."""
        rows: dict[tuple[int, int], set[str]] = defaultdict(set)
        totals = [item for item in self.items if item.name in _TOTALS and not _is_zero(item)]
        for item in totals:
            for place in self.printed.find("amount", item.value):
                rows[place.page.number, place.row].add(item.value)
        for place in (place for places in self.unexplained.values() for place in places):
            values = rows.get((place.page.number, place.row), set())
            missing = [item for item in totals if item.value not in values]
            if len(values) >= _FEWEST_TOTALS and missing and is_money(place):
                yield _differs(missing[0], f"the page shows “{place.words[-1][0]}” in the row of the totals")

    def _compare(self, item: Item, place: Place | None) -> Problem | None:
        if (read := self._read_by_recogniser(item)) and (place is None or not self.explained.has(item.kind, read)):
            return _differs(item, f"the page shows “{read}”")
        if shown := self._shown_instead(item, is_found=place is not None):
            return _differs(item, f"the page shows “{shown}”")
        if place is None and self._is_expected(item):
            message = f"{_named(item)} “{_one_line(item.value)}” of the e-invoice is not on the page."
            return Problem(NOT_ON_PAGE, item.name, message)
        return None

    def _read_by_recogniser(self, item: Item) -> str:
        """Return another value that the recogniser has read for this field with confidence, or ""."""
        read = self.page_fields.get(item.name)
        # A service may give no confidence.
        if not read or (read["confidence"] or 0) < SURE or item.name in FREE_TEXTS:
            return ""
        if agrees(item.kind, item.value, read["value"]):
            return ""
        return str(read["value"])

    def _shown_instead(self, item: Item, *, is_found: bool) -> str:
        """Return what the page shows at the label of this field, or something hardly different, or ""."""
        if item.kind == "amount":
            return self._other_number(item) if item.name in LABELS else ""
        if item.kind == "date":
            return self._other_date(item, is_found=is_found)
        if item.kind == "text" and item.name.endswith("_address"):
            return self._changed_house(item)
        if item.kind == "text":
            return "" if is_found else self._changed_line(item)
        return self._changed_id(item, is_found=is_found) or ("" if is_found else self._labelled_id(item))

    def _other_number(self, item: Item) -> str:
        """Return an unexplained amount in a row with the label, in which the value itself is not."""
        own = self.printed.find("amount", item.value)
        rows = {(place.page.number, place.row) for place in own if is_label(item.name, _before(place))}
        for places in self.unexplained.values():
            for place in places:
                if is_money(place) and (place.page.number, place.row) not in rows and _labelled(item.name, place):
                    return str(place.words[-1][0])
        return ""

    def _other_date(self, item: Item, *, is_found: bool) -> str:
        own = self.printed.dates.get(item.value, [])
        if any(is_label(item.name, _before(place), is_strong=True) for place in own):
            return ""
        mentioned = {place.key for day in self.explained.dates for place in self.printed.dates.get(day, ())}
        own_keys = {place.key for place in own}
        if item.name == "due_date":
            # As in "payable within 30 days from 05.03.2026".
            own_keys |= {place.key for place in self.printed.dates.get(self.invoice.dates["invoice_date"], ())}
        for place in (place for places in self.printed.dates.values() for place in places):
            is_mentioned = place.key in mentioned
            if place.key in own_keys or (is_found and is_mentioned) or not _labelled(item.name, place):
                continue
            if not (is_mentioned and self._is_other_label(item, place)):
                return " ".join(word[0] for word in place.words)
        return ""

    def _is_other_label(self, item: Item, place: Place) -> bool:
        """Return whether the label names another date of the e-invoice even better."""
        context = _before(place)
        own = max((match.end() for match in LABELS[item.name].finditer(context)), default=0)
        others = (name for name in LABELS if name != item.name and name.endswith(("_date", "_start", "_end")))
        return any(match.end() > own for name in others for match in LABELS[name].finditer(context))

    def _changed_id(self, item: Item, *, is_found: bool) -> str:
        """Return an identifier of the page that differs in few characters, at the label if the right one is found."""
        wanted = compacted(item.value)
        if len(wanted) < _SHORTEST_ID:
            return ""
        for page in self.printed.pages:
            for start in page.run_starts:
                end = start + len(wanted)
                candidate = page.compact[start:end]
                if end in page.run_ends and _is_near(candidate, wanted) and candidate not in self.explained.ids:
                    place = page.place_of_runs(page.run_starts[start], page.run_ends[end])
                    is_other = candidate in self.explained.compact or not _labelled(item.name, place)
                    if is_found and is_other:
                        continue
                    return " ".join(word[0] for word in place.words)
        return ""

    def _labelled_id(self, item: Item) -> str:
        """Return the identifier that follows the label of this field, if the XML does not explain it."""
        label = LABELS.get(item.name)
        for page in self.printed.pages if label else ():
            for match in label.finditer(page.text.casefold()) if label else ():
                for word in page.text[match.end() : match.end() + _AFTER_LABEL].split()[:2]:
                    compact = compacted(word)
                    if _ID.fullmatch(word) and compact != compacted(item.value) and compact not in self.explained.ids:
                        return word
        return ""

    def _changed_line(self, item: Item) -> str:
        """Return a line of the page that has most words of a missing line of a text."""
        for line in _lines(item.value):
            if self.printed.find("text", line):
                continue
            if similar := self.printed.similar(line):
                text = " ".join(word[0] for word in similar.words)
                if compacted(text) not in self.explained.compact:
                    return text
        return ""

    def _changed_house(self, item: Item) -> str:
        """Return a line of the page that has the words of an address, but other numbers."""
        for line in _lines(item.value):
            similar = self.printed.similar(line, only_numbers=True)
            text = " ".join(word[0] for word in similar.words) if similar else ""
            # The number may be another party's postcode.
            others = [word for word in text.split() if compacted(word) not in compacted(line)]
            is_explained = compacted(text) in self.explained.compact
            if others and not is_explained and not any(compacted(word) in self.explained.ids for word in others):
                return text
        return self._changed_line(item)

    def _is_expected(self, item: Item) -> bool:
        if item.name == "tax_total":
            # The tax of each rate is enough.
            parts = [self.located[each.name].place for each in self.items if each.name.startswith(TAX_AMOUNT)]
            return not (parts and all(parts))
        return item.name in _EXPECTED or item.name.startswith((TAX_BASE, TAX_AMOUNT))

    def _currency(self) -> Iterator[Problem]:
        shown = self.printed.currencies()
        wanted = self.invoice.currency
        if wanted and shown and wanted not in shown:
            message = f"The e-invoice is in {wanted}, but the page shows {' and '.join(sorted(shown))}."
            yield Problem(DIFFERS, "currency", message)


def best(name: str, places: Sequence[Place]) -> Place | None:
    """Return the place next to the field's label; otherwise the last one of a total, and the first one of others."""
    if not places:
        return None
    labelled = [place for place in places if _labelled(name, place)] if name in LABELS else []
    from_end = name.endswith(("_total", "_amount"))
    return (labelled or places)[-1 if from_end else 0]


def agrees(kind: str, value: str, other: str) -> bool:
    """Compare two values without case, spaces, signs and the currency of an amount."""
    if kind == "amount":
        numbers = {each for each, *_ in numbers_in(value)}
        return not numbers.isdisjoint(each for each, *_ in numbers_in(other))
    if kind != "text":
        return compacted(value) == compacted(other)
    # A name or an address may be given in part, and its words in another order.
    words, others = ({compacted(word) for word in text.split()} - {""} for text in (value, other))
    return bool(words) and bool(others) and (words <= others or others <= words)


def is_money(place: Place) -> bool:
    written = place.words[-1][0].rstrip("€£$%.,;")
    return len(written) > 3 and written[-3] in ",." and written[-2:].isdigit()


def _differs(item: Item, shown: str) -> Problem:
    message = f"{_named(item)} is “{_one_line(item.value)}” in the e-invoice, but {shown}."
    return Problem(DIFFERS, item.name, message)


def _named(item: Item) -> str:
    return f"The field {fields.label_of(item.name)}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"


def _lines(text: str) -> list[str]:
    """Return the lines of a text that a page must show. A page names the country in words, or not at all."""
    lines = [line for line in text.split("\n") if compacted(line)]
    return [line for line in lines if not (len(line) == 2 and line.isupper())] or lines


def _is_zero(item: Item) -> bool:
    return item.kind == "amount" and not any(digit in "123456789" for digit in item.value)


def _before(place: Place) -> str:
    """Return the words before a place, nearest last, in lower case: from its row, or the row before."""
    page = place.page
    first = place.first
    row = page.rows[first - 1] if first else place.row
    while first > 0 and place.first - first < _CONTEXT_WORDS and page.rows[first - 1] == row:
        first -= 1
    return " ".join(word[0] for word in page.words[first : place.first]).casefold()


def _labelled(name: str, place: Place) -> bool:
    return is_label(name, _before(place))


def _is_near(one: str, other: str) -> bool:
    return 0 < sum(a != b for a, b in zip(one, other, strict=True)) <= _CHANGED
