"""Finds amounts of money with decimal commas or points, and their currencies."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

# Space, no-break space, narrow no-break space and thin space.
_SPACES = " \u00a0\u202f\u2009"
_AMOUNT = re.compile(
    rf"""
    (?<![\w.,'’/-])                                   # not within a longer number or word
    (?P<before>[-–−(]\s?)?
    (?:[€$£¥]\s?|[A-Z]{{3}}(?=[-–−\d]))?
    (?P<sign>[-–−])?
    (?P<digits>
        \d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+(?:[.,]\d{{1,3}})?
        | \d+(?:[.,]\d{{1,4}})?
    )
    (?P<after>[-–−)](?!\d))?
    (?![.,/-]?\d|\s?%|°|(?!EUR|USD|GBP|CHF)[A-Za-z])  # no percentage, no date, no 3h and no 10kg
    """,
    re.VERBOSE,
)

_CODES = "EUR|USD|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|CNY|INR|ZAR|ISK|BRL|MXN|SGD"
_SYMBOLS = {"€": "EUR", "£": "GBP", "$": "USD", "¥": "JPY", "zł": "PLN"}
_SHORT = {"US$": "USD"}
# Other countries also use the dollar sign, and China the yen sign.
_SHARED_SYMBOLS = "$¥"
_CURRENCY = re.compile(
    rf"(?P<code>(?<![A-Za-z])(?:US\$|{_CODES})(?![A-Za-z]))|(?P<symbol>[€£$¥]|\bzł\b)|(?P<euro>(?i:\beuros?\b))"
)


@dataclass(frozen=True)
class AmountMatch:
    start: int
    end: int
    value: Decimal
    # Whether it has two decimals, like money.
    has_cents: bool


@dataclass(frozen=True)
class CurrencyMatch:
    start: int
    end: int
    code: str
    # False for a symbol that several currencies share.
    is_sure: bool


def find(text: str, decimal_mark: str) -> list[AmountMatch]:
    """Return possible amounts from left to right, without percentages and parts of longer numbers."""
    matches = []
    for match in _AMOUNT.finditer(text):
        value = parse(match["digits"], decimal_mark)
        before, after = (match["before"] or "").strip(), match["after"] or ""
        is_negative = match["sign"] or before + after in ("()", "-", "–", "−")
        has_cents = re.search(r"[.,]\d{2}$", match["digits"]) is not None
        matches.append(AmountMatch(match.start(), match.end(), -value if is_negative else value, has_cents))
    return matches


def find_currencies(text: str) -> Iterator[CurrencyMatch]:
    for match in _CURRENCY.finditer(text):
        if symbol := match["symbol"]:
            yield CurrencyMatch(match.start(), match.end(), _SYMBOLS[symbol], is_sure=symbol not in _SHARED_SYMBOLS)
        else:
            code = "EUR" if match["euro"] else match["code"]
            yield CurrencyMatch(match.start(), match.end(), _SHORT.get(code, code), is_sure=True)


def decimal_mark(text: str) -> str:
    """Return the mark, comma or point, that precedes the last two digits more often."""
    without_dates = re.sub(r"\d{1,2}[./]\d{1,2}[./]\d{2,4}", " ", text)
    marks = Counter(re.findall(r"(?<=\d)([.,])\d{2}(?![\d.,]*\d|\s?%)", without_dates))
    return "," if marks[","] > marks["."] else "."


def parse(digits: str, decimal_mark: str) -> Decimal:
    """Parse `1.234,56`, `1,234.56`, `1'234.56` or `1 234,56`. The mark only decides ambiguous cases."""
    plain = re.sub(rf"['’{_SPACES}]", "", digits)
    *groups, last = re.split(r"[.,]", plain)
    if not groups:
        return Decimal(plain)
    mark = plain[-len(last) - 1]
    is_group = plain.count(mark) > 1 or (len(last) == 3 and mark != decimal_mark)
    return Decimal("".join(groups) + ("" if is_group else ".") + last)
