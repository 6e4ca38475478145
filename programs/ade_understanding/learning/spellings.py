"""Reads values as documents print them and as people type them, each kind in a form in which equal values are equal."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple

_MONTHS = (
    "januar january jan jänner", "februar february feb", "märz march mar mär mrz", "april apr", "mai may",
    "juni june jun", "juli july jul", "august aug", "september sep sept", "oktober october okt oct",
    "november nov", "dezember december dez dec",
)  # fmt: skip
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_DATE = re.compile(
    r"(?<![\w.,/-])(?:(?P<y>\d{4})[-./](?P<m>\d\d?)[-./](?P<d>\d\d?)"
    r"|(?P<a>\d\d?)(?P<mark>[./-]) ?(?P<b>\d\d?)(?P=mark) ?(?P<y2>\d{4}|\d\d)"
    r"|(?P<d2>\d\d?)(?:\.|st|nd|rd|th)? ?(?P<name>[^\W\d]{3,9})\.?,? ?(?P<y3>\d{4})"
    r"|(?P<name2>[^\W\d]{3,9})\.? (?P<d3>\d\d?)(?:st|nd|rd|th)?,? (?P<y4>\d{4}))(?![\w/-]|[.,]\d)"
)
_CURRENCY = r"(?:EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|HUF|RON|JPY|CAD|AUD|Euro|US\$|[€$£¥])"
_CODES = {"€": "EUR", "euro": "EUR", "$": "USD", "us$": "USD", "£": "GBP", "¥": "JPY"}
_AMOUNT = re.compile(
    rf"(?<![\w.,/-])(?P<minus>[-–−] ?)?(?:(?P<before>{_CURRENCY}) ?)?(?P<minus2>[-–−] ?)?"
    r"(?P<digits>\d{1,3}(?:[.,'’ ]\d{3})+(?:[.,]\d{1,4})?|\d+(?:[.,]\d{1,4})?)"
    rf"(?P<after>-(?!\w))?(?: ?(?P<currency>{_CURRENCY})(?!\w))?(?![\w]|[.,/-]\w| ?%)",
    re.IGNORECASE,
)
_CENTURY = 2000


class Value(NamedTuple):
    start: int
    end: int
    # Equal values have equal forms.
    normal: str
    # How it is printed: the order of a date, or the decimal mark of an amount.
    style: str = ""
    currency: str = ""


def dates(text: str) -> Iterator[Value]:
    """Yield dates. One that may be read in two ways is yielded twice, as day first and as month first."""
    for match in _DATE.finditer(text):
        for style, year, month, day in _readings(match):
            full_year = int(year) + (_CENTURY if len(year) == 2 else 0)
            try:
                yield Value(match.start(), match.end(), date(full_year, month, int(day)).isoformat(), style)
            except ValueError:
                continue


def amounts(text: str, mark: str = "") -> Iterator[Value]:
    """Yield amounts. `mark` is the decimal mark of the document, for `1.234`; without it, three digits are a group."""
    for match in _AMOUNT.finditer(text):
        digits = match["digits"]
        number, used = _decimal(digits, mark)
        if match["minus"] or match["minus2"] or match["after"]:
            number = -number
        symbol = match["before"] or match["currency"] or ""
        code = _CODES.get(symbol.casefold(), symbol.upper())
        yield Value(match.start(), match.end(), _plain(number), used, code)


def folded(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text)).casefold()


READERS: Mapping[str, Callable[[str], Iterator[Value]]] = {"date": dates, "amount": amounts, "decimal": amounts}
# Values of these kinds are runs of words with digits.
NUMBERS = frozenset({"number", "iban", "vat_id", "phone", "email"})


def kind_of(value: str, kind: str) -> str:
    """Return the kind by which to look for a value. A text that looks like a date or an amount is looked for as one."""
    if kind in READERS:
        return kind if whole(value, kind) else "text"
    if kind in NUMBERS:
        return kind
    for each in ("date", "amount"):
        # A number without cents and currency may be anything.
        if (read := whole(value, each)) and (read.style or read.currency):
            return each
    return "number" if any(map(str.isdigit, value)) and len(value.split()) <= 3 and "\n" not in value else "text"


def whole(value: str, kind: str) -> Value | None:
    """Return a value that is all of this text, or None. Dates are read with the day first."""
    return next((each for each in READERS[kind](value.strip()) if len(value.strip()) == each.end - each.start), None)


def _readings(match: re.Match[str]) -> Iterator[tuple[str, str, int, str]]:
    if match["y"]:
        yield "ymd", match["y"], int(match["m"]), match["d"]
    elif match["a"]:
        yield f"d{match['mark']}m", match["y2"], int(match["b"]), match["a"]
        if match["a"] != match["b"]:
            yield f"m{match['mark']}d", match["y2"], int(match["a"]), match["b"]
    elif match["name"]:
        yield "d month", match["y3"], _MONTH.get(match["name"].casefold(), 0), match["d2"]
    else:
        yield "month d", match["y4"], _MONTH.get(match["name2"].casefold(), 0), match["d3"]


def _decimal(digits: str, mark: str) -> tuple[Decimal, str]:
    *groups, last = re.split(r"[.,'’ ]", digits)
    used = digits[-len(last) - 1] if groups else ""
    is_group = len(last) == 3 and used != mark
    if not groups or is_group or used in "'’ ":
        return Decimal("".join([*groups, last])), ""
    return Decimal(f"{''.join(groups)}.{last}"), used


def _plain(number: Decimal) -> str:
    return f"{number:.2f}" if number == number.quantize(Decimal("0.01")) else f"{number.normalize():f}"
