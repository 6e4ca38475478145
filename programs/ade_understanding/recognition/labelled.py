"""Finds values by their labels: after a label in its cell, right of it, or below it."""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from ade_understanding.recognition import labels, values
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.labels import Label
from ade_understanding.recognition.languages import COLUMNS, DISCOUNT, TERMS, UNTIL, WORD, Meaning, normal, phrase
from ade_understanding.recognition.rows import Cell, Place, Rows, around
from ade_understanding.recognition.values import Value

LONGEST_VALUE = 1000
# Candidates that are examined.
FEW = 20
# Amounts below a label, such as the columns of a table of tax rates with a line for the total.
_ROWS_OF_AMOUNTS = 8
# These kinds are recognisable by themselves, so other text may follow them.
_SELF_EVIDENT = ("iban", "vat_id", "email", "phone")
_BASE = re.compile(r"(?:on|of|auf|von|aus|sur|de|op|van|over|su|sobre|od|in|en|w) ", re.IGNORECASE)
_COLON = re.compile(r"[\s:.=-]*")
_REMARK = re.compile(r"\([^()\d]{1,40}\)")
_TIME = re.compile(
    r"\W*(?:at |um |à |om )?\d{1,2} ?[:.h] ?\d{2}(?: ?: ?\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?(?: Uhr)?\W*(?:[A-Za-z]{0,3})"
)
_LAST_OF_TERMS = 160
_MOST_LINES = 6


class Labelled:
    """Reads the labelled values of one page."""

    def __init__(self, rows: Rows, page: int) -> None:
        self.rows, self.page = rows, page
        self.labels: dict[tuple[int, int], Label] = {}
        for number, row in enumerate(rows.rows):
            for column, cell in enumerate(row):
                if label := labels.at_start(cell.text):
                    self.labels[number, column] = label

    @cached_property
    def month_first(self) -> bool | None:
        text = self.rows.text
        is_first = values.month_first(text) if "/" in text else None
        return True if is_first is None and self.currency == "USD" else is_first

    @cached_property
    def currency(self) -> str:
        return values.only_currency(self.rows.text)

    def candidates(self) -> Iterator[tuple[int, Cell, Candidate]]:
        """Yield each value with the row and the cell of its label."""
        for (number, column), label in self.labels.items():
            cell = self.rows.rows[number][column]
            for candidate in self._of_label(number, column, label):
                yield number, cell, candidate
        for number, row in enumerate(self.rows.rows):
            for column, cell in enumerate(row):
                for candidate in self._of_sentence(number, column, cell):
                    yield number, cell, candidate

    def _of_label(self, number: int, column: int, label: Label) -> Iterator[Candidate]:
        cell = self.rows.rows[number][column]
        others = labels.within(cell.text) if cell.text.count(":") > 1 else []
        # Each label's value ends where the next label begins.
        ends = [*(other.start for other in others), len(cell.text)]
        for each, end in zip([label, *others], ends, strict=True):
            place = Place(cell, each.end, end)
            rest = cell.text[each.end : end]
            # The rest of an amount's label may be a currency, or the base as in "VAT 7 % on 130.00 EUR".
            is_amount = any(meaning.kind == "amount" for meaning in each.meanings)
            belongs_to_label = not rest or (
                len(rest) <= LONGEST_VALUE and is_amount and (means_nothing(rest) or _BASE.match(rest) is not None)
            )
            if not belongs_to_label:
                # Without a colon, the value must be all that follows, because the rest may be a sentence.
                found = [
                    candidate
                    for meaning in each.meanings
                    for candidate in self._typed(each, meaning, place, "same", is_whole=not each.has_colon)
                ]
                if not found and each.has_colon:
                    found = list(self._text(each, place, "same"))
                yield from found
            # Words that follow may change the meaning of a label: "Total items" is no amount.
            is_longer = not belongs_to_label and is_amount and not others
            if end == len(cell.text) and (belongs_to_label or (is_longer and any(map(str.isdigit, rest)))):
                yield from self._nearby(number, column, each)

    def _nearby(self, number: int, column: int, label: Label) -> Iterator[Candidate]:
        """Yield the value to the right of a label, otherwise the one below it."""
        row = self.rows.rows[number]
        is_found = False
        amounts: list[Candidate] = []
        for right in range(column + 1, len(row)):
            cell = row[right]
            skipped = _COLON.match(cell.text)
            assert skipped is not None
            place = Place(cell, skipped.end() if ":" in skipped[0] else 0, len(cell.text))
            if place.start == len(cell.text):
                continue
            found = [
                candidate
                for meaning in label.meanings
                for candidate in self._typed(label, meaning, place, "right", is_whole=True)
            ]
            if found:
                is_found = True
                for candidate in found:
                    candidate.signs |= {"second"} if right > column + 1 and candidate.kind != "amount" else set()
                    candidate.signs |= {"last"} if right == len(row) - 1 else set()
                    amounts += [candidate] if candidate.kind == "amount" else []
                yield from found
            other = self.labels.get((number, right))
            if other is not None and (label.is_known or other.stands_out) and not means_nothing(cell.text):
                break
            if not label.is_known or (place.start and not found):
                yield from () if found else self._text(label, place, "right")
                return
            # Between a label and its amount, there may be the rate and the base of a tax.
            if not any(meaning.kind == "amount" for meaning in label.meanings):
                break
        if len({candidate.value for candidate in amounts}) > 1:
            for candidate in amounts:
                candidate.signs.add("several")
        if not is_found and label.is_known:
            yield from self._below(number, column, label)

    def _below(self, number: int, column: int, label: Label) -> Iterator[Candidate]:
        row = self.rows.rows[number]
        under = self.rows.below(number, row[column])
        if under is None:
            return
        signs = {"heads"} if len(row) > 1 and all((number, each) in self.labels for each in range(len(row))) else set()
        if label.has_colon:
            signs.add("colon")
        third = self.rows.below(*under)
        # Possibly the heading of a table column with several values.
        if third is not None and any(map(str.isdigit, third[1].text)) and not labels.at_start(third[1].text):
            signs.add("column")
        for meaning in label.meanings:
            if "column" in signs and (meaning.kind != "amount" or meaning.is_weak):
                continue
            if meaning.is_weak and not label.has_number_sign and "heads" not in signs:
                # Ambiguous words can be trusted in a row of labels.
                continue
            at: tuple[int, Cell] | None = under
            last: list[Candidate] = []
            for _ in range(_ROWS_OF_AMOUNTS if meaning.kind == "amount" else 1):
                if at is None:
                    break
                place = Place(at[1], 0, len(at[1].text))
                found = list(self._typed(label, meaning, place, "below", is_whole=True))
                for candidate in found:
                    candidate.signs |= signs
                if not found:
                    break
                yield from found
                last = found
                at = self.rows.below(*at)
            for candidate in last:
                candidate.signs.add("last")

    def _typed(self, label: Label, meaning: Meaning, place: Place, how: str, *, is_whole: bool) -> Iterator[Candidate]:
        """Yield the values of this kind; a period has two."""
        text = place.cell.text[place.start : place.end][: 2 * LONGEST_VALUE]
        if meaning.kind == "period":
            days = list(islice(values.dates(text, self.month_first), 3))
            if len(days) == 2:
                for name, day in zip(("period_start", "period_end"), days, strict=True):
                    yield self._candidate(name, "date", day, place, how, label)
            return
        if meaning.kind == "text":
            yield from self._text(label, place, how, meaning)
            return
        for value in islice(self.values(meaning.kind, text), FEW):
            before, after = text[: value.start], text[value.end :]
            if meaning.kind == "date" and (end := next(values.dates(after, self.month_first), None)):
                # Two days are a period.
                if len(WORD.findall(after[: end.start])) <= 2 and not before.strip():
                    for name, day, offset in (("period_start", value, 0), ("period_end", end, value.end)):
                        where = Place(place.cell, place.start + offset, place.end)
                        yield self._candidate(name, "date", day, where, how, label)
                return
            rest = before if meaning.kind in _SELF_EVIDENT else before + after
            if meaning.kind == "date" and not before.strip() and _TIME.fullmatch(after):
                rest = ""
            if is_whole and not means_nothing(_REMARK.sub("", rest)):
                continue
            candidate = self._candidate(meaning.name, meaning.kind, value, place, how, label)
            if meaning.is_weak and not label.has_number_sign:
                candidate.signs.add("weak")
            if label.has_colon:
                candidate.signs.add("colon")
            yield candidate
            return

    def _candidate(self, name: str, kind: str, value: Value, place: Place, how: str, label: Label) -> Candidate:
        where = Place(place.cell, place.start + value.start, place.start + value.end)
        signs = set() if value.form == values.LIKELY else {value.form}
        # What is prepaid is often printed as a deduction.
        text = value.text.removeprefix("-") if name == "prepaid_amount" else value.text
        return Candidate(name, text[:LONGEST_VALUE], kind, self.page, where.box, how, label.text, signs)

    def values(self, kind: str, text: str) -> Iterator[Value]:
        if kind == "date":
            return values.dates(text, self.month_first)
        if kind == "amount":
            return values.amounts(text, lambda: self.currency)
        return _READERS[kind](text)

    def _text(self, label: Label, place: Place, how: str, meaning: Meaning | None = None) -> Iterator[Candidate]:
        """Yield the text next to a label: a field of that kind, or a pair of a label that no field belongs to."""
        value = place.cell.text[place.start : place.end].strip(" :")
        if not value or len(value) > LONGEST_VALUE:
            return
        start = place.cell.text.index(value, place.start)
        where = Place(place.cell, start, start + len(value))
        if meaning is not None:
            signs = {"colon"} if label.has_colon else set()
            if meaning.name == "currency":
                code = values.code(value.split()[0]) if value.split() else ""
                if code in values.CODES:
                    yield Candidate("currency", code, "text", self.page, where.box, how, label.text, signs)
            elif (label.has_colon or how != "same") and phrase(value) not in COLUMNS:
                yield Candidate(meaning.name, value, "text", self.page, where.box, how, label.text, signs)
            return
        name = labels.name_of(label.text)
        if not name:
            return
        for kind in ("date", "amount", "iban", "vat_id", "email"):
            for typed in islice(self.values(kind, value), FEW):
                if means_nothing(value[: typed.start] + value[typed.end :]):
                    other = self._candidate(name, kind, typed, where, how, label)
                    other.is_other = True
                    yield other
                    return
        yield Candidate(name, value, "text", self.page, where.box, how, label.text, is_other=True)

    def _of_sentence(self, number: int, column: int, cell: Cell) -> Iterator[Candidate]:
        """Yield terms of payment and the day that they name, as in "payable within 30 days until 4 April"."""
        words = [normal(word) for word in WORD.findall(cell.text[:_LAST_OF_TERMS])]
        if len(words) < 2 or cell.text.startswith("(") or not _begins(words, TERMS):
            return
        text, row = cell.text, self.rows.rows[number]
        cells = [cell]
        # The day may be in the next column.
        if column + 1 < len(row) and next(values.dates(row[column + 1].text, None), None):
            cells.append(row[column + 1])
        label = Label((), text, 0, 0)
        says_when = any(map(str.isdigit, text)) or (len(words) < 6 and "." not in text and words[0] in TERMS)
        is_label = (number, column) in self.labels
        if says_when and (len(words) > 4 or (len(words) > 2 and not is_label)):
            whole = self._sentence(number, cell)
            text_of = " ".join(each.text for each in whole)[:LONGEST_VALUE].lstrip(". ")
            box = around([word for each in whole for word in each.words])
            yield Candidate("payment_terms", text_of, "text", self.page, box, "sentence", text)
        for each in cells:
            for day in islice(values.dates(each.text, self.month_first), FEW):
                before = [normal(word) for word in WORD.findall(text if each is not cell else text[: day.start])]
                if not DISCOUNT.isdisjoint(before):
                    return
                if not UNTIL.isdisjoint(before[-3:]):
                    place = Place(each, 0, len(each.text))
                    yield self._candidate("due_date", "date", day, place, "sentence", label)
                    return

    def _sentence(self, number: int, cell: Cell) -> list[Cell]:
        """Return the lines of a sentence: the next one belongs to it if it does not begin with a capital."""
        lines = [cell]
        for row in self.rows.rows[number + 1 : number + _MOST_LINES]:
            last = lines[-1]
            if len(row) > 1 or abs(row[0].left - cell.left) > 0.02 or row[0].top > last.bottom + last.height:
                break
            if last.text.endswith((".", ":", "!")) or not (row[0].text[0].islower() or row[0].text[0].isdigit()):
                break
            lines.append(row[0])
        return lines


def _begins(words: list[str], phrases: frozenset[str]) -> bool:
    """Return whether one of these phrases is among the first words."""
    start = " ".join(words[:4])
    return any(f" {each} " in f" {start} " for each in phrases)


_READERS = {
    "number": values.numbers,
    "iban": values.ibans_as_labelled,
    "vat_id": values.vat_ids_as_labelled,
    "email": values.emails,
    "phone": values.phones,
}


def means_nothing(rest: str) -> bool:
    return not any(map(str.isalnum, values.without_currencies(rest)))
