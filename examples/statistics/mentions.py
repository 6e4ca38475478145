"""Finds dates and amounts of money as they are written, without interpreting them."""

import re
from typing import NamedTuple

_MONTHS = (
    r"jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|fév|fev|avr|juin|juil|aoû|déc"
    r"|ene|abr|ago|dic|gen|mag|giu|lug|set|ott|maa|mei|maart"
)
_DATE = re.compile(
    r"\b(?:"
    r"\d{4}-\d{2}-\d{2}"
    r"|\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})"
    rf"|\d{{1,2}}\.?\s(?:de\s)?(?:{_MONTHS})\w{{0,7}}\.?(?:\s(?:de\s)?\d{{4}})?"
    rf"|(?:{_MONTHS})\w{{0,7}}\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?"
    r")\b",
    re.IGNORECASE,
)
_CURRENCY = r"(?:€|\$|£|¥|\b(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|Euro|euros?|dollars?|pounds?|Franken|francs?)\b)"
_NUMBER = r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3})*(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_AMOUNT = re.compile(rf"{_CURRENCY}\s?(?:{_NUMBER})(?!\d)|(?<![\d.,])(?:{_NUMBER})\s?{_CURRENCY}")


class Mention(NamedTuple):
    kind: str
    text: str
    line: int


def find_mentions(text: str) -> list[Mention]:
    """Return the mentions line by line; in a line, dates precede amounts."""
    return [
        Mention(kind, match[0].strip(), number)
        for number, line in enumerate(text.splitlines(), 1)
        for kind, pattern in (("date", _DATE), ("amount", _AMOUNT))
        for match in pattern.finditer(line)
    ]
