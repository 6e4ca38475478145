"""Reads typed values out of text, with their normalised form and their place."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from ade_understanding.recognition import ids
from ade_understanding.recognition.languages import MONTHS, normal

# What a checksum or the form of a value shows. LIKELY is the normal case.
CHECKED, LIKELY, AMBIGUOUS, DOUBTFUL = "checked", "likely", "ambiguous", "doubtful"

# Matched where digits start. The name of a month may precede.
_DATE = re.compile(
    r"(?<![\w.,/-])(?:(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})"
    r"|(?P<a>\d{1,2})(?:(?P<sep>[./-]) ?(?P<b>\d{1,2})(?P=sep) ?(?P<year2>\d{4}|\d{2})"
    r"|(?:st|nd|rd|th|er|º|°)?\.?[ -/]?(?:of |de |di )?(?P<name>[^\W\d_]{3,12})[.,]{0,2}[ -/’']?(?:de |del )?"
    r"(?P<year3>\d{4}|\d{2})"
    r"|(?:st|nd|rd|th)?,? (?P<year4>\d{4})))(?![\w-]|[.,/]\d)"
)
_DIGITS = re.compile(r"\d+")
_SLASHED = re.compile(r"\b(\d\d?)/(\d\d?)/\d\d")
_MONTH_BEFORE = re.compile(r"([^\W\d_]{3,12})\.? $")
_LONGEST_MONTH = 14
_EARLIEST, _LATEST = 1900, 2100
_SYMBOLS = {
    "€": "EUR", "£": "GBP", "$": "USD", "¥": "JPY", "US$": "USD", "Euro": "EUR", "euro": "EUR", "Fr.": "CHF",
    "zł": "PLN", "RM": "MYR", "R$": "BRL", "Kč": "CZK",
}  # fmt: skip
_NAMES = "EUR|USD|GBP|CHF|JPY|CAD|AUD|NZD|SGD|MYR|BRL|SEK|NOK|DKK|PLN|CZK|HUF|RON|INR|Euro|euro|zł|Kč|RM|Fr\\."
CODES = frozenset(re.findall("[A-Z]{3}", _NAMES)) | frozenset(_SYMBOLS.values())
_CURRENCY = rf"(?:US\$|R\$|[€£$¥]|(?<![A-Za-z])(?:{_NAMES})(?![A-Za-z]))"
# Each alternative starts with its own letter, so that text without currencies is skipped quickly.
_CURRENCIES = re.compile(rf"US\$|R\$|€|£|\$|¥|(?:{_NAMES})(?![A-Za-z])")
# Space, no-break space, narrow no-break space and thin space.
_SPACES = " \u00a0\u202f\u2009"
_MINUS = "-–−"
_AMOUNT = re.compile(
    rf"(?<![\w.,'’/-])(?P<open>\()?(?P<minus>[{_MINUS}])?[{_SPACES}]?(?P<before>{_CURRENCY})?[{_SPACES}]?"
    rf"(?P<minus2>[{_MINUS}])?(?P<digits>\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}}){{1,5}}(?:[.,]\d{{1,2}})?(?!\d)|"
    rf"\d{{1,15}}(?:[.,]\d{{1,2}})?(?!\d))(?:(?P<after>[{_MINUS}])|[{_SPACES}]?(?P<currency>{_CURRENCY})(?P<after2>[{_MINUS}])?)?"
    r"(?(open)\))(?![.,/-]?\d|[ ]?%|[A-Za-z°])"
)
_AMOUNT_AFTER = re.compile(r"[ :]{0,2}-?\d")
# The longest distance between a currency and the end of its amount.
_NEAR = 24
# A page that names more currencies is a price list.
_MOST_CURRENCIES = 100
_CENTS = re.compile(r"[.,]\d{2}$")
_NUMBER = re.compile(
    r"(?:[A-Z]{1,6} (?=\d))?(?=[A-Za-z/._-]{0,20}\d)[A-Za-z0-9][\w./-]{0,39}(?<![./-])(?: ?/ ?\d{1,8})?"
)
_BIC = re.compile(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?(?![A-Za-z0-9])")
# The start of an IBAN or a VAT ID, which may also lie within another match: "DE136695976 IBAN DE89…".
_ID_START = re.compile(r"[A-Z]{2}(?=(?:[ .-]?[A-Z]{1,2})?[ .-]?\d)")
_ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_LONGEST_ID = 48
_SHORTEST_VAT_ID, _LONGEST_VAT_ID = 6, 14
_LIKE_IBAN = re.compile(r"(?:[A-Z]{2})?\d{2}(?: ?[A-Z0-9]){10,30}(?![A-Za-z0-9])")
_LIKE_VAT_ID = re.compile(r"[A-Z]{0,3}-?[A-Z]?\d[\d .-]{5,13}[A-Z\d](?![A-Za-z0-9])")
# Countries whose VAT IDs are often printed without the country.
_OWN_NUMBERS = ("PL", "IT", "PT", "ES")
_EMAIL = re.compile(
    r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}\.[A-Za-z]{2,24}"
)
_PHONE = re.compile(r"(?<![\w+])\+?\(?\d[\d ()/.–-]{4,24}\d(?![\w])")
_FEWEST_DIGITS, _MOST_DIGITS = 6, 15


class Value(NamedTuple):
    start: int
    end: int
    text: str
    form: str = LIKELY


def month_first(text: str) -> bool | None:
    """Return whether dates with slashes start with the month, or None if no date shows it."""
    votes = sum((int(b) > 12) - (int(a) > 12) for a, b in _SLASHED.findall(text))
    return votes > 0 if votes else None


def only_currency(text: str) -> str:
    codes = {code(match[0]) for match in currencies(text)}
    return codes.pop() if len(codes) == 1 else ""


def currencies(text: str) -> Iterator[re.Match[str]]:
    for match in _CURRENCIES.finditer(text):
        if match[0][0].isalpha() and text[match.start() - 1 : match.start()].isalpha():
            continue
        # "RM" is also a province of Italy.
        if match[0] == "RM" and not (_AMOUNT_AFTER.match(text, match.end()) or text[match.start() - 1] == "("):
            continue
        yield match


def without_currencies(text: str) -> str:
    return _CURRENCIES.sub("", text)


def dates(text: str, month_first: bool | None) -> Iterator[Value]:
    end = 0
    for digits in _DIGITS.finditer(text):
        if digits.start() < end or not (match := _DATE.match(text, digits.start())):
            continue
        start, days = _read_date(match, text, month_first)
        if days:
            end = match.end()
            # 3/4/2026 may be two days.
            yield Value(start, end, days[0].isoformat(), LIKELY if len(days) == 1 else AMBIGUOUS)


def amounts(text: str, currency: Callable[[], str]) -> Iterator[Value]:
    """Yield amounts with cents or a currency; other numbers may be anything. `currency` gives the default."""
    for match in _AMOUNT.finditer(text):
        symbol = match["before"] or match["currency"]
        if not symbol and not _CENTS.search(match["digits"]):
            continue
        is_negative = any(match[name] for name in ("open", "minus", "minus2", "after", "after2"))
        value = -decimal(match["digits"]) if is_negative else decimal(match["digits"])
        start = match.start() + (match[0][0] in _SPACES)
        yield Value(start, match.end(), f"{value:.2f} {code(symbol) if symbol else currency()}".strip())


def numbers(text: str) -> Iterator[Value]:
    """Yield an identifier such as "RE 2026-117", if the text starts with one that is not a date."""
    match = _NUMBER.match(text)
    if match and _DATE.fullmatch(match[0]) is None:
        yield Value(0, match.end(), match[0])
    elif bic := _BIC.match(text):
        yield Value(0, bic.end(), bic[0])


def ibans(text: str) -> Iterator[Value]:
    """Yield IBANs by country and length. A wrong checksum makes them doubtful."""
    for start, country in _ids(text):
        if length := ids.iban_length(country):
            iban, ends = _compact(text[start : start + _LONGEST_ID], length)
            if len(iban) == length and iban[2:4].isdigit():
                yield Value(start, start + ends[-1], iban, CHECKED if ids.is_iban(iban) else DOUBTFUL)


def vat_ids(text: str) -> Iterator[Value]:
    for start, country in _ids(text):
        if country not in ids.VAT_COUNTRIES:
            continue
        part = text[start : start + _LONGEST_ID]
        characters, ends = _compact(part, _LONGEST_VAT_ID)
        # Take the longest valid ID that ends at the end of a word.
        for length in range(len(characters), _SHORTEST_VAT_ID - 1, -1):
            vat_id, end = characters[:length], ends[length - 1]
            if not part[end : end + 1].isalnum() and (holds := ids.vat_checksum(vat_id)) is not None:
                yield Value(start, start + end, vat_id, CHECKED if holds else DOUBTFUL)
                break


def ibans_as_labelled(text: str) -> Iterator[Value]:
    """Yield what stands after a label such as "IBAN": an IBAN, one of a wrong length, or a Polish one without "PL"."""
    found = False
    for value in ibans(text):
        found = True
        yield value
    if not found and (match := _LIKE_IBAN.match(text)):
        compact = "".join(character for character in match[0] if character.isalnum())
        if compact.isdigit() and ids.is_iban(f"PL{compact}"):
            yield Value(0, match.end(), f"PL{compact}", CHECKED)
        elif compact[:2].isalpha():
            yield Value(0, match.end(), compact, DOUBTFUL)


def vat_ids_as_labelled(text: str) -> Iterator[Value]:
    """Yield VAT IDs; their country may be missing after a label such as "NIP" or "P.IVA"."""
    found = False
    for value in vat_ids(text):
        found = True
        yield value
    if not found and (match := _LIKE_VAT_ID.match(text)):
        compact = "".join(character for character in match[0] if character.isalnum())
        if _SHORTEST_VAT_ID < len(compact) <= _LONGEST_VAT_ID:
            is_valid = any(ids.vat_checksum(country + compact) for country in _OWN_NUMBERS)
            yield Value(0, match.end(), compact, CHECKED if is_valid else LIKELY)


def emails(text: str) -> Iterator[Value]:
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Value(match.start(), match.end(), match[0])


def phones(text: str) -> Iterator[Value]:
    for match in _PHONE.finditer(text):
        digits = "".join(_DIGITS.findall(match[0]))
        if _FEWEST_DIGITS <= len(digits) <= _MOST_DIGITS and _DATE.fullmatch(match[0]) is None:
            yield Value(match.start(), match.end(), " ".join(match[0].split()))


def international_phones(text: str) -> Iterator[Value]:
    return (value for value in phones(text) if value.text.startswith("+")) if "+" in text else iter(())


def amounts_of_money(text: str) -> Iterator[Value]:
    """Yield amounts next to a currency. Only those are examined, because a text has many numbers."""
    for match in islice(currencies(text), _MOST_CURRENCIES):
        start = max(match.start() - _NEAR, 0)
        for value in amounts(text[start : match.end() + _NEAR], str):
            if value.text.endswith(code(match[0])) and start + value.start < match.end() <= start + value.end + _NEAR:
                yield value._replace(start=start + value.start, end=start + value.end)


def decimal(digits: str) -> Decimal:
    """Parse `1.234,56`, `1,234.56`, `1'234.56` or `1 234,56`. The last mark is decimal unless three digits follow."""
    *groups, last = re.split(rf"[.,'’{_SPACES}]", digits)
    if not groups or len(last) == 3:
        return Decimal("".join([*groups, last]))
    return Decimal(f"{''.join(groups)}.{last}")


def _read_date(match: re.Match[str], text: str, month_first: bool | None) -> tuple[int, list[date]]:
    """Return where the date starts, and the possible days, most likely first."""
    start = match.start()
    if match["year"]:
        return start, _day(match["year"], int(match["month"]), match["day"])
    if match["sep"]:
        a, b, year = match["a"], match["b"], match["year2"]
        day_first, as_month = _day(year, int(b), a), _day(year, int(a), b)
        if match["sep"] != "/":
            return start, day_first
        if month_first is None and day_first != as_month:
            return start, [*day_first, *as_month]
        return start, (as_month or day_first) if month_first else (day_first or as_month)
    if match["name"]:
        return start, _day(match["year3"], _month(match["name"]), match["a"])
    before = _MONTH_BEFORE.search(text, max(start - _LONGEST_MONTH, 0), start)
    return (before.start(), _day(match["year4"], _month(before[1]), match["a"])) if before else (start, [])


def _month(name: str) -> int:
    return MONTHS.get(normal(name), 0)


def _day(year: str, month: int, day: str) -> list[date]:
    full_year = int(year) + (2000 if len(year) == 2 else 0)
    if not _EARLIEST <= full_year <= _LATEST:
        return []
    try:
        return [date(full_year, month, int(day))]
    except ValueError:
        return []


def _ids(text: str) -> Iterator[tuple[int, str]]:
    """Yield where an ID may start, with its country."""
    for match in _ID_START.finditer(text):
        start = match.start()
        if not text[start - 1 : start].isalnum():
            yield start, match[0]


def _compact(text: str, most: int) -> tuple[str, list[int]]:
    """Return up to `most` letters and digits, and where each ends. Single spaces, dots and dashes may separate them."""
    characters, ends = [], []
    before = ""
    for end, character in enumerate(text, 1):
        if character in _ID_CHARACTERS:
            characters.append(character)
            ends.append(end)
            if len(characters) == most:
                break
        elif character not in " .-" or before in " .-":
            break
        before = character
    return "".join(characters), ends


def code(currency: str) -> str:
    return _SYMBOLS.get(currency, currency)


def is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and _EARLIEST <= int(text) <= _LATEST
