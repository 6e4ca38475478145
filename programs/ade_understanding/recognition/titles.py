"""Recognises what a document is: by its title, and by words that only occur in documents of a type."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ade_understanding.recognition import labels, values
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.labels import LONGEST_NAME
from ade_understanding.recognition.languages import (
    NUMBER_WORDS,
    ON_WORDS,
    SECTIONS,
    SIGNS,
    TITLE_ENDINGS,
    TITLES,
    WORD,
    normal,
    phrase,
)
from ade_understanding.recognition.rows import Cell, Place, Rows

_MOST_TITLE_WORDS = 6
_LONGEST_TITLE = 80
# Words of a title may be preceded by one word that says more, as in "Final invoice".
_MOST_BEFORE = 2
# A remark or a code after the words of a title, such as (380).
_CODE = re.compile(r"[\s:]*(?:\([^()]{1,40}\)[\s:]*){0,2}[\s:,-]*")
# Words and a code between a title and its number, as in "Rechnung des Versicherers (575) Nr. 17".
_CODED = re.compile(r"[^\d()]{1,40}\(\d{3}\)\s*")
_NUMBER_SIGN = re.compile(r"\W*(?:(?:[^\W\d_]{1,8}[.°º]{0,2})\W{0,3}|[#№:]\s?)?")


class Title(NamedTuple):
    type: str
    text: str
    cell: Cell
    # Where the words of the title begin and end in the text of the cell.
    start: int
    end: int
    # Whether the cell holds only the title, perhaps with its number and date.
    is_alone: bool
    page: int


def titles(rows: Rows, page: int) -> Iterator[Title]:
    for row in rows.rows:
        for cell in row:
            if len(cell.text) <= 2 * LONGEST_NAME and (title := _title(cell, page)):
                yield title


def _title(cell: Cell, page: int) -> Title | None:
    if phrase(cell.text) in SECTIONS:
        # The heading of an address, such as "Facturé à", is no title.
        return None
    label = labels.at_start(cell.text)
    most_before = _MOST_BEFORE if label is None else 0
    words = list(WORD.finditer(cell.text[:_LONGEST_TITLE]))[: _MOST_TITLE_WORDS + 6]
    normals = [normal(word[0]) for word in words]
    for first in range(min(len(words), most_before + 1)):
        for count in range(min(_MOST_TITLE_WORDS + 5, len(words) - first), 0, -1):
            wording = " ".join(normals[first : first + count])
            types = TITLES.get(wording)
            if types is None and count == 1:
                types = next(((name,) for end, name in TITLE_ENDINGS.items() if wording.endswith(end)), None)
            if types:
                start, end = words[first].start(), words[first + count - 1].end()
                rest = cell.text[end:]
                after = normals[first + count :]
                if after and after[0] in NUMBER_WORDS and not any(map(str.isdigit, rest)):
                    # A label without its number.
                    return None
                others = [word for word in after if word not in NUMBER_WORDS | ON_WORDS]
                is_alone = first == 0 and (not others or any(map(str.isdigit, rest[:24]))) and len(others) < 3
                return Title(types[0], cell.text[start:end], cell, start, end, is_alone, page)
    return None


def of_title(title: Title, row: list[Cell], month_first: bool | None) -> Iterator[Candidate]:
    """Yield the number and the date of a title such as "Invoice (380) No. 471102 of 05.03.2018"."""
    code = _CODE.match(title.cell.text, title.end)
    assert code is not None
    text, start, cell = title.cell.text, code.end(), title.cell
    if start == len(text):
        # The number may be in the next cell.
        after = row.index(cell) + 1
        if after == len(row):
            return
        cell, text, start = row[after], row[after].text, 0
        word = WORD.match(text)
        if word is None or normal(word[0]) not in NUMBER_WORDS:
            return
    if coded := _CODED.match(text, start):
        start = coded.end()
    elif worded := _worded(text, start, month_first):
        start = worded
    sign = _NUMBER_SIGN.match(text, start)
    assert sign is not None
    words = [normal(word) for word in WORD.findall(sign[0])]
    at = sign.end() if not words or words[0] in NUMBER_WORDS else start
    signs = {"named"} if at > start and sign[0].strip() else set()
    # Spaces separate a number from what follows it in a title.
    piece = text[at:].split(" ", 1)[0].rstrip(",;") if signs else text[at:]
    value = next(values.numbers(piece), None)
    if value and title.type in ("invoice", "credit_note", "receipt") and not values.is_year(value.text):
        where = Place(cell, at + value.start, at + value.end)
        yield Candidate("invoice_number", value.text, "number", title.page, where.box, "title", text, signs)
        at += value.end
    day = next(values.dates(text[at:], month_first), None)
    if day and (title.is_alone or value) and _leads_to_date(text[at : at + day.start]):
        where = Place(cell, at + day.start, at + day.end)
        name = "invoice_date" if title.type in ("invoice", "credit_note") else "date"
        form = set() if day.form == values.LIKELY else {day.form}
        yield Candidate(name, day.text, "date", title.page, where.box, "title", text, signs | form)


def _worded(text: str, start: int, month_first: bool | None) -> int | None:
    """Return where "No." is in a title such as "Invoice of the insurer No. 17 of 3 May", which ends with a date."""
    for word in islice(WORD.finditer(text, start), 1, 5):
        if normal(word[0]) in NUMBER_WORDS and next(values.dates(text[word.end() :], month_first), None):
            return word.start()
    return None


def _leads_to_date(text: str) -> bool:
    words = [normal(word) for word in WORD.findall(text)]
    return not words or " ".join(words) in ON_WORDS or all(word in ON_WORDS for word in words)


def signs(text: str) -> dict[str, set[str]]:
    """Return the words of a page that only occur in documents of a type, by type."""
    found: dict[str, set[str]] = {}
    words = f" {' '.join(map(normal, WORD.findall(text)))} "
    for wording, types in SIGNS.items():
        if f" {wording} " in words:
            for each in types:
                found.setdefault(each, set()).add(wording)
    return found
