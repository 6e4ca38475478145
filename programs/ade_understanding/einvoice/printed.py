"""Finds values on the pages where they are printed: numbers, dates and texts in any usual format."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, islice
from typing import Any, NamedTuple

from ade_understanding.einvoice import model

# A word with its place as fractions of the page, or without: [text, left, top, right, bottom].
Word = Sequence[Any]
Box = list[float]

# Later pages are not compared. An invoice of a thousand pages is a list of calls.
MOST_PAGES = 100
MOST_WORDS = 100_000
_NUMBER = re.compile(
    r"(?<![\w.,'’])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d{1,4})?(?![\w])|(?<![\w.,'’/])(?<!\w-)\d[\d.,'’]*"
)
_GROUPS = re.compile(r"\d{1,3}([.,'’])\d{3}(?:\1\d{3})*")
_NUMERIC_DATE = re.compile(r"(?<![\d.,/-])(\d{1,4})([./-]) ?(\d{1,2})\2 ?(\d{4}|\d{2})(?![\d/-]|[.,]\d)")
_COMPACT_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)")
_NAMED_DATE = re.compile(
    r"(?<![\d.,])(\d{1,2})(?:\.|st|nd|rd|th|er|º)?[ -](?:of |de )?([^\W\d_]{3,12})\.?,?[ -](?:de )?(\d{4})(?!\d)"
    r"|([^\W\d_]{3,12})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})(?!\d)"
)
# The months in English, German, French, Dutch, Spanish, Italian, Portuguese and Polish, by their first letters.
_MONTHS = (
    "jan jän janv ene gen sty", "feb fév fev lut", "mar mär mrz mrt maa", "apr avr abr kwi", "may mai mei maj mag",
    "jun juin giu cze", "jul juil lug lip", "aug aoû aou ago sie", "sep set wrz", "oct okt out ott paź",
    "nov lis", "dec dez déc dic gru",
)  # fmt: skip
_MONTH_NUMBERS = {start: number for number, starts in enumerate(_MONTHS, 1) for start in starts.split()}
_CURRENCY = re.compile(r"[€£]|\b(?:EUR|USD|GBP|CHF|JPY|PLN|CZK|HUF|RON|SEK|NOK|DKK|CAD|AUD)\b")
# Places on one page where one text is printed.
_MOST_PLACES = 100
# Places of words that are examined to find similar texts.
_MOST_WINDOWS = 200
_SIGNS = {"€": "EUR", "£": "GBP"}
# Words that are as alike as this are one word, misspelt or changed.
ALIKE = 0.6
_RUN = re.compile(r"[^\W_]+")


class Place(NamedTuple):
    """Words that follow each other on one page."""

    page: "PrintedPage"
    first: int
    last: int

    @property
    def words(self) -> Sequence[Word]:
        return self.page.words[self.first : self.last + 1]

    @property
    def box(self) -> Box | None:
        words = self.words
        if len(words[0]) < 5:
            return None
        lefts, tops, rights, bottoms = zip(*(word[1:5] for word in words), strict=True)
        box = min(lefts), min(tops), max(rights), max(bottoms)
        return [min(max(float(share), 0.0), 1.0) for share in box]

    @property
    def key(self) -> tuple[int, int]:
        """The page and the last word, in which a number of several groups ends too."""
        return self.page.number, self.last

    @property
    def row(self) -> int:
        return self.page.rows[self.first]


class PrintedPage:
    """The words of a page in some order, each with the number of its row from the top."""

    def __init__(self, number: int, words: Sequence[Word], rows: Sequence[int]) -> None:
        self.number = number
        self.words, self.rows = words, rows
        self.text = " ".join([word[0] for word in self.words])
        self._starts = [0, *accumulate(len(word[0]) + 1 for word in self.words)]
        runs = [(match[0], match.start(), match.end()) for match in _RUN.finditer(self.text)]
        self.compact = "".join([run.casefold() for run, *_ in runs])
        lengths = [len(run.casefold()) for run, *_ in runs]
        ends = list(accumulate(lengths))
        # Where each run of letters and digits starts and ends in `compact`, and its number.
        self.run_ends = {end: number for number, end in enumerate(ends)}
        self.run_starts = {end - length: number for number, (end, length) in enumerate(zip(ends, lengths, strict=True))}
        self._runs = runs

    def place(self, start: int, end: int) -> Place:
        """Return the words that hold this part of the text."""
        return Place(self, bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1)

    def place_of_runs(self, first: int, last: int) -> Place:
        return self.place(self._runs[first][1], self._runs[last][2])

    def find(self, compact: str) -> Iterator[Place]:
        """Yield where these letters and digits are printed, with any spaces and signs between them."""
        at = self.compact.find(compact)
        while at >= 0:
            end = at + len(compact)
            if at in self.run_starts and end in self.run_ends:
                yield self.place_of_runs(self.run_starts[at], self.run_ends[end])
            at = self.compact.find(compact, at + 1)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """Where each word is among the runs."""
        positions: dict[str, list[int]] = defaultdict(list)
        for number, run in enumerate(self._folded):
            positions[run].append(number)
        return positions

    @cached_property
    def _folded(self) -> list[str]:
        return [run.casefold() for run, *_ in self._runs]

    def windows(self, wanted: list[str]) -> Iterator[tuple[int, bool]]:
        """Yield the numbers of the runs where as many begin that mostly equal the wanted ones, but not all, and whether
        any word without digits differs.
        """
        words = [(number, word) for number, word in enumerate(wanted) if len(word) > 2 and word.isalpha()]
        starts = (at - number for number, word in words for at in self._positions.get(word, ()))
        for start in islice(starts, _MOST_WINDOWS):
            runs = self._folded[max(start, 0) : start + len(wanted)]
            if start < 0 or len(runs) < len(wanted):
                continue
            others = [(one, other) for one, other in zip(wanted, runs, strict=True) if one != other]
            # One of four words may be any other; more only if they are alike.
            few = len(others) * 4 <= len(wanted) and not any(
                len(one) > 2 and one in self._positions for one, _ in others
            )
            some = len(others) * 2 <= len(wanted) and all(_is_alike(one, other) for one, other in others)
            if others and (few or some):
                yield start, not all(any(map(str.isdigit, word)) for pair in others for word in pair)


class Printed:
    """All pages of a document."""

    def __init__(self, pages: Iterable[tuple[int, Sequence[Word]]]) -> None:
        # In reading order: rows from the top, each from the left.
        self.pages: list[PrintedPage] = []
        # The same pages in the order of the file, in which the lines of a cell follow each other.
        self._in_file_order: list[PrintedPage] = []
        self._found: dict[str, list[Place]] = {}
        room = MOST_WORDS
        for number, words in pages:
            if room > 0 and len(self.pages) < MOST_PAGES:
                rows = _rows(words[:room])
                in_order = sorted(zip(rows, words, strict=False), key=_row_and_left)
                self.pages.append(PrintedPage(number, [word for _, word in in_order], [row for row, _ in in_order]))
                self._in_file_order.append(PrintedPage(number, words[:room], rows))
                room -= len(words)
        self.numbers: dict[Decimal, list[Place]] = defaultdict(list)
        self.dates: dict[str, list[Place]] = defaultdict(list)
        for page in self.pages:
            for value, start, end in numbers_in(page.text):
                self.numbers[value].append(page.place(start, end))
            for day, start, end in dates_in(page.text):
                self.dates[day].append(page.place(start, end))

    @property
    def has_words(self) -> bool:
        """Whether there is anything to compare. A scan without recognised text has no words."""
        return any(page.words for page in self.pages)

    def find(self, kind: str, value: str) -> list[Place]:
        """Return all places of a value of a field."""
        if kind in ("amount", "decimal") and (wanted := number_of(value)) is not None:
            return self.numbers.get(wanted, [])
        if kind == "date":
            return self.dates.get(value, [])
        compact = compacted(value)
        if compact not in self._found:
            self._found[compact] = self._find(compact) if compact else []
        return self._found[compact]

    def _find(self, compact: str) -> list[Place]:
        for pages in (self.pages, self._in_file_order):
            if places := [place for page in pages for place in islice(page.find(compact), _MOST_PLACES)]:
                return places
        return []

    def similar(self, text: str, *, only_numbers: bool = False) -> Place | None:
        """Return words that mostly equal the text, such as "High Street 21" for "High Street 20"."""
        wanted = [run.casefold() for run in _RUN.findall(text)]
        for page in [*self.pages, *self._in_file_order] if len(wanted) > 1 else []:
            for start, has_other_words in page.windows(wanted):
                if not (only_numbers and has_other_words):
                    return page.place_of_runs(start, start + len(wanted) - 1)
        return None

    def currencies(self) -> set[str]:
        """Return the codes of the currencies that the pages name."""
        found = set()
        for page in self.pages:
            for match in _CURRENCY.finditer(page.text):
                found.add(_SIGNS.get(match[0], match[0]))
        return found


def number_of(value: str) -> Decimal | None:
    """Return the number of an amount without its sign and currency, or None if it has none."""
    found = model.number(value.partition(" ")[0])
    return None if found is None or found.value is None else abs(found.value)


def compacted(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return "".join([run.casefold() for run in _RUN.findall(text)])


def numbers_in(text: str) -> Iterator[tuple[Decimal, int, int]]:
    """Yield the numbers of a text without their signs. A number that can be read in two ways is yielded twice."""
    for match in _NUMBER.finditer(text):
        written = match[0].rstrip(".,'’")
        # "2 280,00" may be two numbers or one.
        start = match.start()
        for value in _readings(re.sub(r"[ \u00a0\u202f]", "", written)):
            yield value, start, start + len(written)
        parts = list(re.finditer(r"[^ \u00a0\u202f]+", written))
        for part in parts if len(parts) > 1 else ():
            for value in _readings(part[0]):
                yield value, start + part.start(), start + part.end()


def dates_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the dates of a text. A date that can be read in two ways is yielded twice."""
    for match in _NUMERIC_DATE.finditer(text):
        first, mark, second, third = match.groups()
        orders = [(first, second, third)] if len(first) == 4 else [(third, second, first)]
        if mark == "/" and len(first) < 4 and first != second:
            orders.append((third, first, second))
        for year, month, day in orders:
            yield from _day(year, month, day, match)
    for match in _COMPACT_DATE.finditer(text):
        yield from _day(match[1], match[2], match[3], match)
    for match in _NAMED_DATE.finditer(text):
        day, name, year = match.groups()[:3] if match[1] else (match[5], match[4], match[6])
        if month := _month(name):
            yield from _day(year, str(month), day, match)


def _readings(written: str) -> Iterator[Decimal]:
    marks = [each for each in written if each in ".,'’"]
    if not marks:
        yield Decimal(written)
        return
    whole, mark, decimals = written.rpartition(marks[-1])
    digits = re.sub(r"[.,'’]", "", whole)
    # The last mark is decimal if it is the only one of its kind.
    if mark in ".," and decimals and marks.count(mark) == 1:
        yield Decimal(f"{digits}.{decimals}")
    # Only thousands, as in 1.234 or 1'234'567.
    if _GROUPS.fullmatch(written):
        yield Decimal(f"{digits}{decimals}")


def _day(year: str, month: str, day: str, match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    try:
        found = date(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day))
    except ValueError:
        return
    yield found.isoformat(), match.start(), match.end()


def _month(name: str) -> int:
    lower = name.casefold()
    return _MONTH_NUMBERS.get(lower[:4], 0) or _MONTH_NUMBERS.get(lower[:3], 0)


def _is_alike(one: str, other: str) -> bool:
    both_have_digits = any(map(str.isdigit, one)) and any(map(str.isdigit, other))
    return both_have_digits or SequenceMatcher(None, one, other).ratio() >= ALIKE


def _rows(words: Sequence[Word]) -> list[int]:
    """Return the number of each word's row. Words without places are in one row."""
    numbers = [0] * len(words)
    if not words or len(words[0]) < 5:
        return numbers
    last: Word | None = None
    row = -1
    for index in sorted(range(len(words)), key=lambda each: words[each][2] + words[each][4]):
        word = words[index]
        # In a row, the middle of each word lies within the height of the other, because sizes may differ.
        if last is None or not (
            last[2] <= (word[2] + word[4]) / 2 <= last[4] and word[2] <= (last[2] + last[4]) / 2 <= word[4]
        ):
            row += 1
        numbers[index], last = row, word
    return numbers


def _row_and_left(word: tuple[int, Word]) -> tuple[int, float]:
    return word[0], word[1][1] if len(word[1]) > 1 else 0.0
