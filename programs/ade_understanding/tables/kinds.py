"""Reads the values of a column: decimals, amounts, percentages and dates.

The cells of a column have one kind and are written alike, so they are read together: `1.234` is a thousand in a column
with `12,50`, and one in a column with `0.5`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

TEXT, DECIMAL, AMOUNT, DATE, PERCENTAGE = "text", "decimal", "amount", "date", "percentage"

# A column has a kind if this share of its cells does. Others, such as "see note 2", then have no value.
LEAST = 0.8
# Longer texts are not values.
LONGEST = 40
# Cells without a value.
_NOTHING = re.compile(r"[-–—.*†‡#x§/]*|\(?x\)?|n/?a\.?|k\.? ?a\.?|none|nil", re.IGNORECASE)
_CODES = {"€": "EUR", "£": "GBP", "$": "USD", "US$": "USD", "¥": "JPY", "EURO": "EUR", "FR.": "CHF"}
_CURRENCY = r"US\$|[€£$¥]|(?:EUR|USD|GBP|CHF|JPY|CAD|AUD|SEK|NOK|DKK|PLN|CZK|HUF|RON|Euro)(?![A-Za-z])|Fr\."
_NUMBER = re.compile(
    rf"(?:[*†‡§]{{1,3}} ?)?(?P<open>\()?\s*(?P<minus>[-–−])?\s*(?P<before>{_CURRENCY})?\s*(?P<minus2>[-–−])?\s*"
    r"(?P<digits>\d{1,15}|\d{1,3}(?:[.,'’ \u00a0\u202f\u2009]\d{3}){1,5}|\d{1,15}[.,]\d{1,10}"
    r"|\d{1,3}(?:[.,'’ \u00a0\u202f\u2009]\d{3}){1,5}[.,]\d{1,10}|[.,]\d{1,10})"
    rf"\s*(?:(?P<percent>%)|(?P<after>{_CURRENCY}))?\s*(?P<minus3>[-–−])?(?(open)\s*\))(?:\s?[*†‡§]{{1,3}})?",
    re.IGNORECASE,
)
_MARK = re.compile(r"[.,]")
_GROUPS = re.compile(r"['’ \u00a0\u202f\u2009]")
_MONTHS = (
    "january januar jan jänner jän", "february februar feb", "march märz mar mär mrz", "april apr", "may mai",
    "june juni jun", "july juli jul", "august aug", "september sep sept", "october oktober oct okt",
    "november nov", "december dezember dec dez",
)  # fmt: skip
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?)?")
_NUMERIC = re.compile(r"(\d{1,2})([./-]) ?(\d{1,2})\2 ?(\d{4}|\d{2})")
_NAMED = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?[ -]?([A-Za-zäÄ]{3,9})\.?,?[ -](\d{4}|\d{2})")
_MONTH_FIRST = re.compile(r"([A-Za-zäÄ]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")
_EARLIEST, _LATEST = 1800, 2199


# The day that a text means if the day comes before the month, and if it comes after.
Days = tuple[date | None, date | None]


class Column(NamedTuple):
    kind: str
    # For each text, its value in a normal form; None if it has none.
    values: list[str | None]


def read(columns: Sequence[Sequence[str]]) -> list[Column]:
    """Return the kind and the values of each column."""
    marks = [_decimal_mark(texts) for texts in columns]
    (usual, _), *_ = Counter(mark for mark in marks if mark).most_common(1) or [("", 0)]
    return [_column(texts, mark or usual) for texts, mark in zip(columns, marks, strict=True)]


def is_value(text: str) -> bool:
    """Return whether this is a number or a date, and so not the header of a column."""
    text = text.strip()
    return len(text) <= LONGEST and (_NUMBER.fullmatch(text) is not None or any(_days(text)))


def is_nothing(text: str) -> bool:
    return _NOTHING.fullmatch(text.strip()) is not None


def _column(texts: Sequence[str], mark: str) -> Column:
    # Equal texts are common, and read once.
    distinct = {text for text in texts if len(text) <= LONGEST}
    matches = {text: match for text in distinct if (match := _NUMBER.fullmatch(text.strip()))}
    filled = [text for text in texts if not is_nothing(text)]
    if filled and sum(text in matches for text in filled) >= LEAST * len(filled):
        kind = _kind_of(matches[text] for text in filled if text in matches)
        values = {text: _number(match, mark, kind) for text, match in matches.items()}
        return Column(kind, [values.get(text) for text in texts])
    days = {text: found for text in distinct if any(found := _days(text.strip()))}
    if filled and sum(text in days for text in filled) >= LEAST * len(filled):
        # If one of the dates can only be read with the month first, all of them are.
        month_first = any(day_first is None for day_first, _ in days.values())
        dates = {text: str(found[month_first] or found[not month_first]) for text, found in days.items()}
        return Column(DATE, [dates.get(text) for text in texts])
    return Column(TEXT, [None] * len(texts))


def _kind_of(matches: Iterable[re.Match[str]]) -> str:
    count = percentages = amounts = 0
    for match in matches:
        count += 1
        percentages += match["percent"] is not None
        amounts += bool(match["before"] or match["after"])
    if percentages > count / 2:
        return PERCENTAGE
    # Often only the first and the last amount of a column have a currency.
    return AMOUNT if amounts else DECIMAL


def _number(match: re.Match[str], mark: str, kind: str) -> str | None:
    symbol = match["before"] or match["after"]
    if bool(match["percent"]) != (kind == PERCENTAGE) and (symbol or match["percent"]):
        return None
    digits = _GROUPS.sub("", match["digits"])
    if mark:
        digits = digits.replace("," if mark == "." else ".", "")
    elif len(digits) - digits.rfind(",") == 4 or digits.count(",") > 1:
        # Nothing shows the mark, so three digits are a group.
        digits = digits.replace(",", "")
    elif len(digits) - digits.rfind(".") == 4 or digits.count(".") > 1:
        digits = digits.replace(".", "")
    digits = digits.replace(",", ".")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    is_negative = any(match[name] for name in ("open", "minus", "minus2", "minus3"))
    value = format(Decimal(f"{'-' if is_negative else ''}{digits}"), "f")
    return f"{value} {_CODES.get(symbol.upper(), symbol.upper())}" if symbol and kind == AMOUNT else value


def _decimal_mark(texts: Sequence[str]) -> str:
    """Return the decimal mark that these numbers show, or "" if they show none."""
    votes: Counter[str] = Counter()
    for text in set(texts):
        match = _NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST else None
        marks = _MARK.findall(match["digits"]) if match else []
        if not match or not marks:
            continue
        whole, _, decimals = match["digits"].rpartition(marks[-1])
        if len(set(marks)) == 2 or (len(marks) == 1 and (len(decimals) != 3 or whole in ("", "0"))):
            votes[marks[-1]] += 1
        elif len(marks) > 1:
            votes["." if marks[-1] == "," else ","] += 1
    return votes.most_common(1)[0][0] if votes else ""


def _days(text: str) -> Days:
    if match := _ISO.fullmatch(text):
        return (_day(*match.groups()[:3]),) * 2
    if match := _NUMERIC.fullmatch(text):
        one, separator, other, year = match.groups()
        day_first = _day(year, other, one)
        return day_first, _day(year, one, other) if separator == "/" else day_first
    if match := _NAMED.fullmatch(text):
        return (_day(match[3], _month(match[2]), match[1]),) * 2
    if match := _MONTH_FIRST.fullmatch(text):
        return (_day(match[3], _month(match[1]), match[2]),) * 2
    return None, None


def _month(name: str) -> str:
    return str(_MONTH_NUMBERS.get(name.casefold(), 0))


def _day(year: str, month: str, day: str) -> date | None:
    full_year = int(year) + (2000 if len(year) == 2 else 0)
    if not _EARLIEST <= full_year <= _LATEST:
        return None
    try:
        return date(full_year, int(month), int(day))
    except ValueError:
        return None


def value_of(kind: str, text: str) -> str | None:
    """Return the value of a single text of a column of this kind, or None if it has none."""
    column = _column([text], _decimal_mark([text]))
    if column.kind == kind or {column.kind, kind} == {DECIMAL, AMOUNT}:
        return column.values[0]
    return None
