"""Finds dates in a text, in all common formats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTHS = [
    "january januar januari janvier enero gennaio jan jän jänner janv ene gen",
    "february februar februari février febrero febbraio feb févr fév",
    "march märz maart mars marzo mar mär mrz mrt",
    "april avril abril aprile apr avr abr",
    "may mai mei mayo maggio mag",
    "june juni juin junio giugno jun giu",
    "july juli juillet julio luglio jul juil lug",
    "august augustus août agosto aug ago aoû",
    "september septembre septiembre settembre sep sept set",
    "october oktober octobre octubre ottobre oct okt ott",
    "november novembre noviembre nov",
    "december dezember décembre diciembre dicembre dec dez déc dic",
]
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_MONTH = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))

_ISO = re.compile(r"(?<![\d-])(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)")
_NUMERIC = re.compile(r"(?<![\d./-])(?P<a>\d{1,2})(?P<sep>[./-]) ?(?P<b>\d{1,2})(?P=sep) ?(?P<year>\d{4}|\d{2})(?!\d)")
_DAY_MONTH = re.compile(
    rf"(?<!\d)(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|er)?[ -]?(?:of |de )?(?P<month>{_MONTH})\.?[ ,-]{{0,2}}(?:de )?"
    r"(?P<year>\d{4}|\d{2})(?!\d)",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})(?!\d)", re.IGNORECASE
)
_EARLIEST, _LATEST = 1990, 2100


@dataclass(frozen=True)
class DateMatch:
    """A date's place in the text and its meanings: two different days if it is ambiguous, like 11/12/2026."""

    start: int
    end: int
    day_first: date | None
    month_first: date | None

    @property
    def is_ambiguous(self) -> bool:
        return self.day_first is not None and self.month_first is not None and self.day_first != self.month_first

    def read(self, *, month_first: bool) -> date:
        first, second = (self.month_first, self.day_first) if month_first else (self.day_first, self.month_first)
        day = first or second
        assert day is not None
        return day


def find(text: str) -> list[DateMatch]:
    """Return the dates from left to right, without overlaps."""
    candidates: list[DateMatch] = []
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY):
        for match in pattern.finditer(text):
            month = _MONTH_NUMBERS.get(match["month"].casefold()) or int(match["month"])
            if day := _day(match["year"], month, match["day"]):
                candidates.append(DateMatch(match.start(), match.end(), day, day))
    candidates += _find_numeric(text)
    matches: list[DateMatch] = []
    for each in sorted(candidates, key=lambda each: (each.start, -each.end)):
        if not matches or each.start >= matches[-1].end:
            matches.append(each)
    return matches


def prefers_month_first(text: str) -> bool | None:
    """Return whether the unambiguous dates put the month first, or None if they do not show it."""
    clear = [
        each for each in _find_numeric(text, separators="/") if (each.day_first is None) != (each.month_first is None)
    ]
    if not clear:
        return None
    return sum(1 if each.day_first is None else -1 for each in clear) > 0


def _find_numeric(text: str, separators: str = "./-") -> Iterator[DateMatch]:
    """Yield numeric dates. With dots, the day comes first; with slashes and dashes, that depends on the writer."""
    for match in _NUMERIC.finditer(text):
        if match["sep"] not in separators:
            continue
        a, b, year = match["a"], match["b"], match["year"]
        day_first = _day(year, int(b), a)
        month_first = day_first if match["sep"] == "." else _day(year, int(a), b)
        if day_first or month_first:
            yield DateMatch(match.start(), match.end(), day_first, month_first)


def _day(year: str, month: int, day: str) -> date | None:
    full_year = int(year) + (2000 if len(year) == 2 else 0)
    if not _EARLIEST <= full_year <= _LATEST:
        return None
    try:
        return date(full_year, month, int(day))
    except ValueError:
        return None
