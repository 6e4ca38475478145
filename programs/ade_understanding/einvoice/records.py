"""Finds and compares the rows of an e-invoice's tables: its lines, and the tax of each rate.

The numbers of a line must be in its block: the rows of the page from where its description or article is printed to
where those of the next line are.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from ade_understanding.einvoice.comparison import (
    DIFFERS,
    NOT_ON_PAGE,
    Explained,
    numbers_of,
)
from ade_understanding.einvoice.model import Amount, Invoice, Line
from ade_understanding.einvoice.printed import Place, Printed, compacted, number_of
from ade_understanding.einvoice.problems import Problem
from ade_understanding.vocabulary import LINE_ITEMS

# Lines that are located and compared. Looking for more would take too long.
MOST_LINES = 1000
# Rows of a page before the anchor of a line, and after it if no other line follows.
_BEFORE, _AFTER = 2, 6
# What the page shows in the block of a line, or in none.
_COLUMNS = ("quantity", "unit_price", "tax_rate", "amount")


# As many numbers of a line in one row make it the row of the line.
_SEVERAL, _SURELY = 2, 3
_DECIMALS = re.compile(r"\d[.,]\d{2,4}(?!\d)")


class Block(NamedTuple):
    page: int
    first: int
    last: int

    def has(self, place: Place) -> bool:
        return place.page.number == self.page and self.first <= place.row <= self.last


class Records:
    def __init__(self, invoice: Invoice, printed: Printed, explained: Explained, tables: list[dict[str, Any]]) -> None:
        self.invoice, self.printed, self.explained = invoice, printed, explained
        self.tables = {table["name"]: table for table in tables}
        self.lines = invoice.lines[:MOST_LINES]
        used: Counter[str] = Counter()
        self.anchors = [self._anchor(line, used) for line in self.lines]
        self.blocks = self._blocks()
        self._by_row: dict[tuple[int, int], list[tuple[Decimal, Place]]] = defaultdict(list)
        for value, places in printed.numbers.items():
            for place in places:
                self._by_row[_row(place)].append((value, place))
        # For each line, whether its numbers are in its block; and in how many lines each column is, and is not.
        numbers = range(len(self.lines))
        self._shown = [{column: self._is_in_block(column, number) for column in _COLUMNS} for number in numbers]
        self._found = Counter(column for line in self._shown for column, is_shown in line.items() if is_shown)
        self._missing = Counter(
            column for line in self._shown for column, is_shown in line.items() if is_shown is False
        )
        missing = [line for line in self.lines if line.position and not printed.find("number", line.position)]
        self._positions_shown = len(missing) == 1 < len(self.lines)
        self._articles_shown = any(line.article and printed.find("number", line.article) for line in self.lines)

    def locate(self) -> None:
        """Give the cells of all tables their places."""
        for name, table in self.tables.items():
            for number, row in enumerate(table["rows"][:MOST_LINES]):
                block = self.blocks[number] if name == LINE_ITEMS else None
                for column, cell in zip(table["columns"], row, strict=True):
                    if column["name"] not in ("unit", "category", "type", "position"):
                        self._locate(column["kind"], cell, block)

    def problems(self) -> Iterator[Problem]:
        yield from self._taxes()
        for each in self.invoice.allowances:
            value = each.amount.value if each.amount else None
            if value and not self.printed.numbers.get(abs(value)):
                what = "charge" if each.is_charge else "allowance"
                message = (
                    f"The {what} of {each.amount.text if each.amount else ''} in the e-invoice is not on the page."
                )
                yield Problem(NOT_ON_PAGE, f"{what}_total", message)
        for number, line in enumerate(self.lines):
            if problem := self._compare(number, line):
                yield problem

    def _compare(self, number: int, line: Line) -> Problem | None:
        name = f"Line {line.position or number + 1}"
        if problem := self._compare_description(name, line):
            return problem
        # Pages show the articles of all lines or of none.
        if line.article and self._articles_shown and not self.printed.find("number", line.article):
            return Problem(NOT_ON_PAGE, LINE_ITEMS, f"{name}: the article “{line.article}” is not on the page.")
        # Short numbers are found anywhere, so they cannot be missed.
        if len(line.position) > 1 and self._positions_shown and not self.printed.find("number", line.position):
            return Problem(NOT_ON_PAGE, LINE_ITEMS, f"{name}: this number of the line is not on the page.")
        for column in _COLUMNS:
            if self._shown[number][column] is False and self._is_expected(column, number):
                what = f"{name}: the {column.replace('_', ' ')} is {_value(line, column)} in the e-invoice"
                if other := self._unexplained(self.blocks[number]):
                    return Problem(DIFFERS, LINE_ITEMS, f"{what}, but the page shows “{other}” there.")
                # Found elsewhere, it may be in a row that was not taken for one of this line.
                if not any(value in self.printed.numbers for value in _values(line, column)):
                    return Problem(NOT_ON_PAGE, LINE_ITEMS, f"{what}, but that is not on the page.")
        if other := self._other_in_row(number, line):
            message = f"{name}: the page shows “{other}” in its row, which this line of the e-invoice does not have."
            return Problem(DIFFERS, LINE_ITEMS, message)
        return None

    def _other_in_row(self, number: int, line: Line) -> str:
        """Return a decimal number in a row with several numbers of a line that the line does not have."""
        block = self.blocks[number]
        if block is None or not (line.quantity and line.unit_price and line.amount):
            return ""
        inside = self._inside(block)
        shown = {value for column in _COLUMNS for value in _values(line, column)}
        rows: dict[int, set[Decimal]] = defaultdict(set)
        for value, place in inside:
            if value in shown:
                rows[place.row].add(value)
        own = numbers_of(line.leaves)
        own |= {round(each, 2) for each in own}
        known = {place.key for value, place in inside if value in own}
        for value, place in inside:
            # A number of another line needs a row that surely is the one of this line.
            least = _SURELY if value in self.explained.numbers else _SEVERAL
            if place.key not in known and len(rows[place.row]) >= least and _has_decimals(place):
                return str(place.words[-1][0])
        return ""

    def _inside(self, block: Block) -> list[tuple[Decimal, Place]]:
        """Return the numbers in a block, with their places."""
        return [each for row in range(block.first, block.last + 1) for each in self._by_row.get((block.page, row), ())]

    def _compare_description(self, name: str, line: Line) -> Problem | None:
        missing = []
        for text in filter(compacted, line.description.split("\n")):
            if self.printed.find("text", text):
                continue
            if similar := self.printed.similar(text):
                shown = " ".join(word[0] for word in similar.words)
                if compacted(shown) not in self.explained.compact:
                    message = f"{name}: the description is “{text}” in the e-invoice, but the page shows “{shown}”."
                    return Problem(DIFFERS, LINE_ITEMS, message)
            missing += [word for word in text.split() if compacted(word) and not self.printed.find("text", word)]
        words = [word for word in line.description.split() if compacted(word)]
        if missing and 2 * len(missing) >= len(words):
            message = f"{name}: the description “{' '.join(words)[:200]}” of the e-invoice is not on the page."
            return Problem(NOT_ON_PAGE, LINE_ITEMS, message)
        return None

    def _is_expected(self, column: str, number: int) -> bool:
        """Return whether the page shows this column: for all other lines, or if it shows the rest of this line."""
        if self._missing[column] > 1:
            return False
        rest = [each for name, each in self._shown[number].items() if name != column and each is not None]
        # The rate is often left out of the only line.
        return self._found[column] > 0 or (column != "tax_rate" and len(rest) > 1 and all(rest))

    def _is_in_block(self, column: str, number: int) -> bool | None:
        """Return whether a number of a line is in its block, or None if that cannot be said."""
        block, values = self.blocks[number], _values(self.lines[number], column)
        if block is None or not values:
            return None
        return any(value in values for value, _ in self._inside(block))

    def _unexplained(self, block: Block | None) -> str:
        if block is None:
            return ""
        inside = self._inside(block)
        known = {place.key for value, place in inside if value in self.explained.numbers}
        others = (place for _, place in inside if place.key not in known and _has_decimals(place))
        return next((str(place.words[-1][0]) for place in others), "")

    def _taxes(self) -> Iterator[Problem]:
        """Compare the rows of the page that show a rate with its base or tax."""
        for tax in self.invoice.taxes:
            if not (tax.rate and tax.base and tax.amount and tax.rate.value and tax.base.value and tax.amount.value):
                continue
            rates = {(place.page.number, place.row) for place in self.printed.numbers.get(tax.rate.value, ())}
            for one, other, what in ((tax.base, tax.amount, "tax"), (tax.amount, tax.base, "net amount")):
                rows, theirs = self._rows_of(one) & rates, self._rows_of(other)
                for page, row in sorted(rows - theirs) if not rows & theirs else ():
                    if shown := self._unexplained(Block(page, row, row)):
                        message = (
                            f"The {what} of {tax.rate.text} % is {other.text} in the e-invoice, but the page shows "
                            f"“{shown}” in its row."
                        )
                        yield Problem(DIFFERS, "tax_total" if what == "tax" else "net_total", message)
                        break

    def _rows_of(self, amount: Amount) -> set[tuple[int, int]]:
        return {_row(place) for place in self.printed.find("amount", str(amount.value))}

    def _anchor(self, line: Line, used: Counter[str]) -> Place | None:
        for kind, text in (("text", line.description), ("number", line.article), ("number", line.standard_article)):
            # Short texts are found anywhere.
            if len(compacted(text)) > 2 and (places := self.printed.find(kind, text)):
                # Each of several equal lines has a place of its own.
                used[text] += 1
                return places[min(used[text], len(places)) - 1]
        return None

    def _blocks(self) -> list[Block | None]:
        rows: dict[int, set[int]] = defaultdict(set)
        for page, row in (_row(place) for place in self.anchors if place):
            rows[page].add(row)
        in_order = {page: sorted(each) for page, each in rows.items()}
        # The last line is as high as the highest other one.
        heights = [after - before for each in in_order.values() for before, after in pairwise(each)]
        height = min(max(heights, default=_AFTER), _AFTER)
        blocks: list[Block | None] = []
        for place in self.anchors:
            if place is None:
                blocks.append(None)
                continue
            others = in_order[place.page.number]
            at = bisect_left(others, place.row)
            first = max(others[at - 1] + 1 if at else 0, place.row - _BEFORE)
            last = others[at + 1] - 1 if at + 1 < len(others) else place.row + height
            blocks.append(Block(place.page.number, first, last))
        return blocks

    def _locate(self, kind: str, cell: dict[str, Any], block: Block | None) -> None:
        if not cell["value"]:
            return
        places = self.printed.find(kind, cell["value"])
        inside: Iterable[Place] = ()
        if block and kind in ("amount", "decimal"):
            wanted = number_of(cell["value"])
            inside = (place for value, place in self._inside(block) if value == wanted)
        elif block:
            inside = (place for place in places if block.has(place))
        if place := next(iter(inside), places[0] if places else None):
            cell["page"], cell["box"] = place.page.number, place.box


def _value(line: Line, column: str) -> str:
    value = getattr(line, column)
    return value.text if isinstance(value, Amount) else str(value)


def _values(line: Line, column: str) -> set[Decimal]:
    """Return how a number of a line may be printed: a price also in cents."""
    amount: Amount | None = getattr(line, column)
    if amount is None or amount.value is None:
        return set()
    value = abs(amount.value)
    return {value, round(value, 2)} if column == "unit_price" else {value}


def _has_decimals(place: Place) -> bool:
    return _DECIMALS.search(place.words[-1][0]) is not None


def _row(place: Place) -> tuple[int, int]:
    return place.page.number, place.row
