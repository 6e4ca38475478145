"""Compares values with their truth, and finds out whether a text shows a value in any usual format.

Written without the code of ADE's reader, because it judges the reader.
"""

import re
from datetime import date
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,'’]*(?![\w])")
_WIDE_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?(?![\w])")
_CURRENCY = re.compile(r"^\s?(?:€|£|\$|EUR|USD|GBP|CHF|PLN|zł)|(?:€|£|\$|EUR|USD|GBP|CHF|PLN)\s?$")
# The months of English, German, French, Dutch, Spanish, Italian, Portuguese and Polish.
_MONTHS = [
    "january januar jan jänner janvier januari enero gennaio janeiro stycznia styczeń",
    "february februar feb février februari febrero febbraio fevereiro lutego luty",
    "march märz mar mär mrz mars maart marzo março marca marzec",
    "april apr avril abril aprile kwietnia kwiecień",
    "may mai mei mayo maggio maio maja maj",
    "june juni jun juin junio giugno junho czerwca czerwiec",
    "july juli jul juillet julio luglio julho lipca lipiec",
    "august aug août augustus agosto sierpnia sierpień",
    "september sep sept septembre septiembre settembre setembro września wrzesień",
    "october oktober oct okt octobre octubre ottobre outubro października październik",
    "november nov novembre noviembre novembro listopada listopad",
    "december dezember dec dez décembre diciembre dicembre dezembro grudnia grudzień",
]
MONTHS = [f"(?:{'|'.join(sorted(names.split(), key=len, reverse=True))})" for names in _MONTHS]


def is_equal(kind: str, truth: str, found: str) -> bool:
    """Compare without case, spaces, trailing zeros, and the currency of a truth that has none."""
    if kind in ("amount", "decimal"):
        amount, _, currency = found.partition(" ")
        wanted, _, wanted_currency = truth.partition(" ")
        return decimal(amount) == decimal(wanted) and wanted_currency in ("", currency)
    if kind == "text":
        lines = [_plain(line) for line in truth.split("\n")]
        # A name of several lines also counts as read if one line of it is given, such as the last one of "GLN 43…\nX".
        return _plain(found) == _plain(truth) or (len(_plain(found)) > 3 and _plain(found) in lines)
    return "".join(found.split()).casefold() == "".join(truth.split()).casefold()


def is_printed(kind: str, truth: str, text: str) -> bool:
    if kind in ("amount", "decimal"):
        value = decimal(truth.partition(" ")[0])
        return value is not None and abs(value) in numbers(text, bare=kind == "decimal")
    if kind == "text":
        # Names of a single character are found everywhere.
        return len(truth.strip()) > 1 and all(_plain(line) in _plain(text) for line in truth.split("\n"))
    return bool(truth.strip()) and any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns(kind, truth))


def patterns(kind: str, truth: str) -> list[str]:
    """Return expressions for the usual formats of a value."""
    if kind == "date":
        return _date_patterns(date.fromisoformat(truth))
    if kind in ("amount", "decimal"):
        whole, _, decimals = truth.lstrip("-").partition(".")
        grouped = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", "[.,' ]?", whole)
        rests = [f"[.,]{decimals.rstrip('0')}0*"] if decimals.rstrip("0") else ["[.,]0+", ""]
        return [rf"(?<![\d.,]){grouped}{rest}(?![\d]|[.,]\d)" for rest in rests]
    if kind == "text":
        return [r"\s+".join(map(re.escape, truth.split()))]
    loose = r"[\s.-]?".join(re.escape(each) for each in "".join(truth.split()))
    return [rf"(?<![A-Za-z0-9]){loose}(?![A-Za-z0-9])"]


def iso_day(text: str) -> str:
    """Return the day of a truth such as 31/12/18, 2018-12-31, 20181231 or 31 DEC 2018, or "" if it is no day."""
    parts = re.findall(r"\d+|[^\W\d_]+", text)
    if len(parts) == 1 and len(parts[0]) == 8:
        parts = [parts[0][:4], parts[0][4:6], parts[0][6:]]
    if len(parts) != 3:
        return ""
    numbers = [_month(part) if part[0].isalpha() else int(part) for part in parts]
    year, month, day = numbers if len(parts[0]) == 4 else reversed(numbers)
    try:
        return date(year + 2000 if year < 100 else year, month, day).isoformat()
    except ValueError:
        return ""


def _month(name: str) -> int:
    return next((number for number, names in enumerate(MONTHS, 1) if re.fullmatch(names, name, re.IGNORECASE)), 0)


def numbers(text: str, *, bare: bool) -> set[Decimal]:
    """Return all numbers of a text. Without `bare`, only those with decimals or next to a currency."""
    found: set[Decimal] = set()
    for match in [*_NUMBER.finditer(text), *_WIDE_NUMBER.finditer(text)]:
        token = re.sub(r"[\s'’\u00a0\u202f]", "", match[0]).rstrip(".,")
        is_money = _CURRENCY.search(text[match.end() : match.end() + 5]) or _CURRENCY.search(
            text[max(match.start() - 5, 0) : match.start()]
        )
        whole, mark, decimals = token.rpartition(next((each for each in reversed(token) if each in ".,"), "."))
        readings = [re.sub(r"[.,]", "", token)] if bare or is_money else []
        if mark:
            readings.append(re.sub(r"[.,]", "", whole) + "." + decimals)
        found |= {value for reading in readings if (value := decimal(reading)) is not None}
    return found


def decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _date_patterns(day: date) -> list[str]:
    d, m, month = f"0?{day.day}", f"0?{day.month}", MONTHS[day.month - 1]
    year = f"(?:{day.year}|{day.year % 100:02})"
    orders = [
        rf"{day.year}[-./]{day.month:02}[-./]{day.day:02}",
        f"{day:%Y%m%d}",
        rf"{d}([-./]) ?{m}\1 ?{year}",
        rf"{m}/{d}/{year}",
        rf"{d}(?:\.|st|nd|rd|th|er|º)?[ -]?(?:of |de )?{month}\.?,?[ -]?(?:de )?{year}",
        rf"{month}\.? {d}(?:st|nd|rd|th)?,? {year}",
    ]
    return [rf"(?<![\d.,/]){each}(?!\d)" for each in orders]
