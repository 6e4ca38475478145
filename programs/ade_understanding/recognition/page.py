"""Collects what one page says: candidates for fields, titles, amounts and the lines of tax rates."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate, islice, pairwise
from typing import Any

from ade_understanding.recognition import labels, titles, values
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.items import ItemTable, item_tables
from ade_understanding.recognition.labelled import FEW, Labelled
from ade_understanding.recognition.languages import ON_WORDS, SECTIONS, UNTIL, WORD, normal, phrase
from ade_understanding.recognition.parties import Parties
from ade_understanding.recognition.rates import Amount, RateLine, amounts_in, rate_lines
from ade_understanding.recognition.rows import A4, Place, Rows
from ade_understanding.recognition.titles import Title
from ade_understanding.recognition.values import Value

# A form has some dozens. A page with more is a list or an attack.
MOST_OTHERS, MOST_KNOWN, MOST_AMOUNTS = 100, 400, 400
# The date of a letter stands alone on its line, except for a place.
_PLACE = re.compile(r"(?:[^\W\d]{2,30}(?:[ -][^\W\d]{2,30}){0,2},? ?(?:den |the |le |el |dnia )?)?")
_MOST_SUMMED = 40
_LONGEST_BETWEEN = 12
# How far the name of a value may be before it in a sentence.
_NEAR = 28
_BIC = re.compile(r"\b(?:BIC|SWIFT)\b[^\w\n]{0,3}([A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)(?![A-Za-z0-9])")
# Fields of a buyer's section.
_OF_BUYER = {"vat_id": "buyer_vat_id"}


@dataclass(slots=True)
class PageFindings:
    number: int
    candidates: list[Candidate] = field(default_factory=list)
    others: list[Candidate] = field(default_factory=list)
    titles: list[Title] = field(default_factory=list)
    amounts: list[tuple[Amount, int]] = field(default_factory=list)
    rate_lines: list[RateLine] = field(default_factory=list)
    # The sums of amounts that are in consecutive rows.
    run_sums: set[Decimal] = field(default_factory=set)
    signs: dict[str, set[str]] = field(default_factory=dict)
    currencies: list[str] = field(default_factory=list)
    items: list[ItemTable] = field(default_factory=list)
    # The text of its rows.
    text: str = ""


def analyse(page: Mapping[str, Any]) -> PageFindings:
    width, height = page.get("width"), page.get("height")
    rows = Rows(page["text"], page["words"], page["tables"], height / width if width and height else A4)
    labelled = Labelled(rows, page["number"])
    parties = Parties(labelled)
    found = PageFindings(page["number"], text=rows.text)
    for number, cell, candidate in labelled.candidates():
        section = parties.section_at(number, cell)
        if section is not None:
            _place_in_section(candidate, section.name, cell.text)
        if candidate.is_other:
            if len(found.others) < MOST_OTHERS:
                found.others.append(candidate)
        elif len(found.candidates) < MOST_KNOWN:
            found.candidates.append(candidate)
    found.candidates += islice(parties.candidates(), MOST_KNOWN)
    found.titles = list(islice(titles.titles(rows, page["number"]), FEW))
    for row, title in ((row, title) for row in rows.rows for title in found.titles if title.cell in row):
        found.candidates += titles.of_title(title, row, labelled.month_first)
    by_row = {number: amounts for number, row in enumerate(rows.rows) if (amounts := amounts_in(labelled, number, row))}
    found.amounts = [(amount, page["number"]) for each in by_row.values() for amount in each][:MOST_AMOUNTS]
    found.run_sums = _run_sums([each[-1].value for each in by_row.values()])
    found.rate_lines = list(islice(rate_lines(labelled, by_row), MOST_KNOWN))
    found.candidates += islice(_forms(labelled, found), MOST_KNOWN)
    if page.get("ocr"):
        for candidate in found.candidates:
            candidate.signs.add("scan")
    found.items = list(islice(item_tables(labelled), FEW))
    found.candidates = [each for each in found.candidates if not _is_of_item(each, found.items)]
    found.signs = titles.signs(rows.text)
    found.currencies = [values.code(match[0]) for match in islice(values.currencies(rows.text), MOST_AMOUNTS)]
    return found


def _is_of_item(candidate: Candidate, tables: list[ItemTable]) -> bool:
    """Return whether a number is the quantity or price of an item whose name is also a label, such as "Delivery"."""
    return (
        candidate.kind == "number"
        and candidate.how == "right"
        and "weak" in candidate.signs
        and any(each.box(0, len(each.text)) == candidate.box for table in tables for each in table.numbers())
    )


def _run_sums(amounts: list[Decimal]) -> set[Decimal]:
    """Return the sums of two and more consecutive amounts. A page with many amounts is a list, where chance adds up."""
    if len(amounts) > _MOST_SUMMED:
        return set()
    sums: set[Decimal] = set()
    for start in range(len(amounts)):
        sums.update(list(accumulate(amounts[start:]))[1:])
    return sums - {Decimal()}


def _place_in_section(candidate: Candidate, section: str, label: str) -> None:
    """Let the section say whose number or name it is."""
    if section == "buyer":
        candidate.name = _OF_BUYER.get(candidate.name, candidate.name)
        if candidate.is_other and "party_number" in SECTIONS.get(phrase(label), ()):
            candidate.name, candidate.is_other = "customer_number", False
            candidate.kind = "number"
        if candidate.name in ("email", "phone", "fax", "tax_number"):
            candidate.name, candidate.is_other = f"buyer_{candidate.name}", True
    if section in ("seller", "buyer", "payment", "totals"):
        candidate.signs.add(f"in {section}")


def _forms(labelled: Labelled, found: PageFindings) -> Iterator[Candidate]:
    """Yield values that are recognised by their form alone."""
    rows, page = labelled.rows, labelled.page
    seen = {candidate.value for candidate in found.candidates}
    for kind, reader in (("iban", values.ibans), ("vat_id", values.vat_ids)):
        for value in islice(reader(rows.text), FEW):
            is_named = kind in rows.text[max(value.start - _NEAR, 0) : value.start].lower()
            if (value.form != values.DOUBTFUL or is_named) and value.text not in seen:
                seen.add(value.text)
                place = rows.place(value.start, value.end)
                signs = {value.form, "named"} if is_named else {value.form}
                yield Candidate(kind, value.text, kind, page, place.box, "form", "", signs)
    for match in islice(_BIC.finditer(rows.text), FEW):
        place = rows.place(match.start(1), match.end(1))
        yield Candidate("bic", match[1], "number", page, place.box, "form", "", {"named"})
    kinds = {candidate.kind for candidate in found.candidates}
    for kind, find in (("email", values.emails), ("phone", values.international_phones)):
        few = list(islice(find(rows.text), FEW)) if kind not in kinds else []
        if len({value.text for value in few}) == 1:
            place = rows.place(few[0].start, few[0].end)
            yield Candidate(kind, few[0].text, kind, page, place.box, "form")
    yield from _dates(labelled, found)


def _dates(labelled: Labelled, found: PageFindings) -> Iterator[Candidate]:
    """Yield days without a label of their own."""
    rows, page = labelled.rows, labelled.page
    known = {(each.value, tuple(each.box or ())) for each in found.candidates if each.kind == "date"}
    dates = list(islice(values.dates(rows.text, labelled.month_first), FEW))
    alone = len({value.text for value in dates}) == 1
    single = {id(row[0]) for row in rows.rows if len(row) == 1}
    for value in dates:
        place = rows.place(value.start, value.end)
        if (value.text, tuple(place.box or ())) in known:
            continue
        signs = {"alone on page"} if alone else set()
        if value.form != values.LIKELY:
            signs.add(value.form)
        if id(place.cell) in single and _stands_alone(place):
            signs.add("alone in line")
        if value is dates[0]:
            signs.add("first")
        yield Candidate("date", value.text, "date", page, place.box, "form", "", signs)
        yield from _named_in_sentence(labelled, value, place)
    for start, end in pairwise(dates):
        yield from _period(labelled, start, end)


def _period(labelled: Labelled, start: Value, end: Value) -> Iterator[Candidate]:
    """Yield the days of a period that a sentence names: "for the period from 1 May to 31 May"."""
    text, page = labelled.rows.text, labelled.page
    between = text[start.end : end.start]
    if len(between) > _LONGEST_BETWEEN or len(WORD.findall(between)) > 2 or start.text > end.text:
        return
    for word in WORD.finditer(text, max(start.start - _NEAR, 0), start.start):
        label = labels.known(text, word.start())
        if label and "period" in label.names() and len(WORD.findall(text[label.end : start.start])) < 3:
            for name, day in (("period_start", start), ("period_end", end)):
                box = labelled.rows.place(day.start, day.end).box
                yield Candidate(name, day.text, "date", page, box, "sentence", label.text, {"before"})
            return


def _named_in_sentence(labelled: Labelled, value: Value, place: Place) -> Iterator[Candidate]:
    """Yield a day that a sentence gives a name: "due on 4 April", "am 4. April fällig"."""
    text = labelled.rows.text
    begin = max(value.start - _NEAR, 0)
    labels_before = [labels.known(text, word.start()) for word in WORD.finditer(text, begin, value.start)]
    before = next((label for label in labels_before if label and _joins(text[label.end : value.start])), None)
    after = labels.known(text, value.end + 1) if text[value.end : value.end + 1].isspace() else None
    for label, sign in ((before, "before"), (after, "after")):
        for meaning in label.meanings if label else ():
            if meaning.kind == "date" and not meaning.is_weak and label is not None:
                signs = {sign} if value.form == values.LIKELY else {sign, value.form}
                yield Candidate(
                    meaning.name, value.text, "date", labelled.page, place.box, "sentence", label.text, signs
                )


def _joins(text: str) -> bool:
    words = [normal(word) for word in WORD.findall(text)]
    return len(text) < 12 and all(word in ON_WORDS or word in UNTIL for word in words)


def _stands_alone(place: Place) -> bool:
    text = place.cell.text
    return place.end == len(text) and _PLACE.fullmatch(text, 0, place.start) is not None


def shows_signs(text: str) -> bool:
    """Return whether a page may have fields, without the places of its words."""
    rows = Rows(text, [], [])
    labelled = Labelled(rows, 1)
    return any(label.is_known for label in labelled.labels.values()) or bool(
        next(values.ibans(text), None) or next(titles.titles(rows, 1), None)
    )
