"""Finds the lines of a page that state the tax of one rate: base, rate and tax, in any order and language."""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from ade_understanding.recognition.labelled import FEW, Labelled
from ade_understanding.recognition.languages import TAX_WORDS, WORD, normal
from ade_understanding.recognition.rows import Cell, Place
from ade_understanding.recognition.values import Value

# The rounding of various countries.
TOLERANCE = Decimal("0.02")
HIGHEST_RATE = 30
_RATE = re.compile(r"(?<![\d.,])(\d{1,2}(?:[.,]\d{1,4})?) ?%")
# A number that may be a rate without a percent sign, alone in its cell, perhaps with a code for its kind.
_BARE_RATE = re.compile(r"(?:[A-Z]{1,2} ?)?\(?(\d{1,2}(?:[.,]\d{1,2})?)\)?(?: ?[A-Z*])?")
_MOST_AMOUNTS = 6


class Amount(NamedTuple):
    """An amount on a page, with the numbers of its row and its cell."""

    value: Decimal
    currency: str
    place: Place
    row: int
    column: int


class RateLine(NamedTuple):
    rate: Decimal
    base: Amount | None
    tax: Amount
    # Whether the line or the one above it names the tax or shows a percent sign.
    is_named: bool
    page: int
    text: str


def parse(value: str) -> tuple[Decimal, str]:
    number, _, currency = value.partition(" ")
    return Decimal(number), currency


def amounts_in(labelled: Labelled, number: int, row: list[Cell]) -> list[Amount]:
    found = []
    for column, cell in enumerate(row):
        if not any(map(str.isdigit, cell.text)):
            continue
        for value in islice(labelled.values("amount", cell.text[:200]), FEW):
            found.append(_amount(cell, value, number, column))
    return found


def _amount(cell: Cell, value: Value, number: int, column: int) -> Amount:
    decimal, currency = parse(value.text)
    return Amount(decimal, currency, Place(cell, value.start, value.end), number, column)


def rate_lines(labelled: Labelled, amounts: dict[int, list[Amount]]) -> Iterator[RateLine]:
    """Yield the lines in which an amount is the tax of another one at a rate that is also there."""
    for number, found in amounts.items():
        row = labelled.rows.rows[number]
        if not 1 <= len(found) <= _MOST_AMOUNTS:
            continue
        text = " ".join(cell.text for cell in row)
        if not any(map(str.isdigit, text)):
            continue
        has_tax_word = _names_tax(text)
        above = labelled.rows.rows[max(number - 3, 0) : number]
        is_named = has_tax_word or any(_names_tax(cell.text) for row_above in above for cell in row_above)
        signed = [Decimal(match[1].replace(",", ".")) for match in islice(_RATE.finditer(text), FEW)]
        bare = [
            Decimal(match[1].replace(",", ".")) for cell in row if (match := _BARE_RATE.fullmatch(cell.text.strip()))
        ]
        rates = [rate for rate in dict.fromkeys(signed + (bare if is_named else [])) if 0 <= rate <= HIGHEST_RATE]
        line = next(_matches(rates, found, is_named, labelled.page, text), None)
        if line:
            yield line
        elif has_tax_word and len(signed) == 1 and len(found) == 1 and signed[0] <= HIGHEST_RATE:
            # Only the rate and its tax, as in "VAT 20 % 54.00".
            yield RateLine(signed[0], None, found[0], True, labelled.page, text)


def _names_tax(text: str) -> bool:
    return any(normal(word) in TAX_WORDS or normal(word).endswith("steuer") for word in WORD.findall(text))


def _matches(rates: list[Decimal], found: list[Amount], is_named: bool, page: int, text: str) -> Iterator[RateLine]:
    for rate in rates:
        for base in found:
            for tax in found:
                if base is tax or not base.value or (tax.value == 0) != (rate == 0) or tax.value == rate != 0:
                    continue
                if abs(base.value * rate / 100 - tax.value) <= TOLERANCE / 2 and abs(tax.value) < abs(base.value):
                    yield RateLine(rate, base, tax, is_named, page, text)
