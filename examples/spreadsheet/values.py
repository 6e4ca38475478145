"""Cleans single cells and reads them as types."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

INTEGER, DECIMAL, DATE, BOOLEAN, TEXT = "integer", "decimal", "date", "boolean", "text"

_SPACES = re.compile(r"[\s\u00a0\u2000-\u200a\u202f\u3000]+")
_INVISIBLE = re.compile(r"[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_CURRENCY = re.compile(r"^(?:€|\$|£|CHF|EUR|USD|GBP) ?(?=[-\d])|(?<=\d) ?(?:€|\$|£|CHF|EUR|USD|GBP)$")
# A leading zero, as in 00123 or 0351 4960, marks an identifier rather than a number.
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:([.,'’ ])\d{3})(?:\1\d{3})*")
_DECIMAL = re.compile(
    r"-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:[.'’ ]\d{3})+),\d+|-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:[,'’ ]\d{3})+)\.\d+"
)
_ISO_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]00:00(?::00(?:\.0+)?)?)?")
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
_BOOLEANS = {
    "true": True,
    "false": False,
    "yes": True,
    "no": False,
    "ja": True,
    "nein": False,
    "oui": True,
    "non": False,
}
_LONGEST_INTEGER = 15


@dataclass(frozen=True)
class Conventions:
    """How a column writes values that can be read in two ways."""

    decimal_mark: str = "."
    month_first: bool = False


@dataclass(frozen=True)
class Cell:
    """The cleaned text of a cell, the typed value if the workbook has one, and whether cleaning changed the text."""

    text: str
    typed: Any = None
    was_cleaned: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.text


def cell(value: Any) -> Cell:
    match value:
        case None | "":
            return Cell("")
        case str():
            return _text_cell(value)
        case bool():
            return Cell("true" if value else "false", value)
        case int():
            return Cell(str(value), value)
        case float():
            if value.is_integer() and abs(value) < 10**_LONGEST_INTEGER:
                return Cell(str(int(value)), int(value))
            return Cell(str(value), Decimal(repr(value)))
        case datetime() if value.time() == time():
            return Cell(value.date().isoformat(), value.date())
        case date():
            return Cell(value.isoformat(), value)
        case timedelta():
            minutes, seconds = divmod(int(value.total_seconds()), 60)
            return Cell(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}")
    return Cell(str(value))


def clean(text: str) -> str:
    """Normalise the characters, remove invisible ones, and collapse spaces."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _SPACES.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFC", text))).strip()


def read(cell: Cell, kind: str, conventions: Conventions) -> Any:
    """Return the cell's value in this type, or None if it does not fit."""
    match kind:
        case "integer":
            return _integer(cell, conventions)
        case "decimal":
            if isinstance(cell.typed, Decimal):
                return cell.typed
            if (whole := _integer(cell, conventions)) is not None:
                return Decimal(whole)
            number, mark = _without_currency(cell.text), conventions.decimal_mark
            if not _DECIMAL.fullmatch(number) or max(".,", key=number.rfind) != mark:
                return None
            return Decimal(re.sub(rf"[^\d{re.escape(mark)}-]", "", number).replace(",", "."))
        case "date":
            if isinstance(cell.typed, date):
                return cell.typed
            if iso := _ISO_DATE.fullmatch(cell.text):
                return _day(iso[1], iso[2], iso[3])
            if match := _DATE.fullmatch(cell.text):
                is_month_first = conventions.month_first and match[2] != "."
                month, day = (match[1], match[3]) if is_month_first else (match[3], match[1])
                return _day(match[4] if len(match[4]) == 4 else f"20{match[4]}", month, day)
            return None
        case "boolean":
            return cell.typed if isinstance(cell.typed, bool) else _BOOLEANS.get(cell.text.casefold())
    return cell.text


def as_text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)


def decimal_mark_of(text: str) -> str | None:
    """Return comma or point if the text is unambiguous, otherwise None."""
    number = _without_currency(text)
    if _DECIMAL.fullmatch(number) and not _GROUPED.fullmatch(number):
        return max(".,", key=number.rfind)
    grouped = _GROUPED.fullmatch(number)
    if grouped and grouped[1] in ".," and number.count(grouped[1]) > 1:
        return "," if grouped[1] == "." else "."
    return None


def month_first_of(text: str) -> bool | None:
    """Return whether the month comes first if only one order gives a date, otherwise None."""
    match = _DATE.fullmatch(text)
    if match is None or match[2] == ".":
        return None
    a, b = int(match[1]), int(match[3])
    return None if (a > 12) == (b > 12) else b > 12


def is_open_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    return (
        match is not None and match[2] != "." and int(match[1]) <= 12 and int(match[3]) <= 12 and match[1] != match[3]
    )


# Columns repeat values.
@lru_cache(maxsize=50_000)
def _text_cell(value: str) -> Cell:
    text = clean(value)
    return Cell(text, was_cleaned=text != value)


def _without_currency(text: str) -> str:
    return _CURRENCY.sub("", text)


def _integer(cell: Cell, conventions: Conventions) -> int | None:
    if isinstance(cell.typed, int) and not isinstance(cell.typed, bool):
        return cell.typed
    number = _without_currency(cell.text)
    if _INTEGER.fullmatch(number) and len(number) <= _LONGEST_INTEGER:
        return int(number)
    grouped = _GROUPED.fullmatch(number)
    if grouped and grouped[1] != conventions.decimal_mark:
        return int(re.sub(r"[^\d-]", "", number))
    return None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
