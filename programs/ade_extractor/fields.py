"""Recognises fields on pages: values next to their labels, and values that are known by their form.

`find` works on one page, `merge` on the results of all pages. Both return values for JSON and are deterministic.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from ade_extractor import labels, totals, values
from ade_extractor.labels import Label
from ade_extractor.rows import Cell, Place, Rows, Word
from ade_extractor.values import BARE, CHECKED, DOUBTFUL, Value

SOURCE = "local"
# A form has some dozens. A page with more is a list or an attack.
MOST_PER_PAGE = 100
MOST = 500
LONGEST_VALUE = 1000
# The confidence of a text next to an unknown label.
SHAPED = 0.6
# Candidates that are examined. A value without a label only counts if it is the only one of its kind on the page.
_FEW = 20
# These kinds are recognisable by themselves, so other text may follow them.
_SELF_EVIDENT = ("iban", "vat_id", "email", "phone")
_BASE = re.compile(r"(?:on|of|auf|von|aus) ", re.IGNORECASE)
_PLACE = re.compile(r"(?:[^\W\d]{2,30}(?:[ -][^\W\d]{2,30}){0,2},? ?(?:den |the )?)?")

Field = dict[str, Any]


def find(page_number: int, text: str, words: Sequence[Word], tables: Sequence[Any]) -> list[Field]:
    """Return the fields of one page.

    A name may occur several times, because the right one is only known after all pages.
    """
    page = _Page(Rows(text, words, tables))
    unique: dict[tuple[str, str], Field] = {}
    for name, kind, place, value, confidence in islice(page.fields(), MOST_PER_PAGE):
        key = (name, value)
        if key not in unique or unique[key]["confidence"] < confidence:
            unique[key] = {
                "name": name,
                "value": value,
                "kind": kind,
                "confidence": confidence,
                "page": page_number,
                "box": place.box,
                "source": SOURCE,
            }
    return list(unique.values())


def merge(fields: Sequence[Field]) -> list[Field]:
    """Return one field per name from all pages: the one with the highest confidence, or the first of equals."""
    best: dict[str, Field] = {}
    for field in totals.check(sorted(fields, key=lambda field: int(field["page"]))):
        other = best.get(field["name"])
        if other is None or other["confidence"] < field["confidence"]:
            best[field["name"]] = field
    # If there are too many, drop those with the lowest confidence, and keep the order of the document.
    surest = sorted(best.values(), key=lambda field: -field["confidence"])[:MOST]
    names = {field["name"] for field in surest}
    return [field for name, field in best.items() if name in names]


_Candidate = tuple[str, str, Place, str, float]


class _Page:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._only_currency: str | None = None
        self._seen_kinds: set[str] = set()
        self._seen_values: set[str] = set()

    def fields(self) -> Iterator[_Candidate]:
        for number, row in enumerate(self._rows.rows):
            for column, cell in enumerate(row):
                if label := labels.at_start(cell.text):
                    yield from self._record(self._labelled_fields(number, column, cell, label))
        yield from self._record(self._by_form())

    def _record(self, fields: Iterator[_Candidate]) -> Iterator[_Candidate]:
        for field in fields:
            self._seen_kinds.add(field[1])
            self._seen_values.add(field[3])
            yield field

    @cached_property
    def _month_first(self) -> bool | None:
        text = self._rows.text
        is_first = values.month_first(text) if "/" in text else None
        return True if is_first is None and self._currency() == "USD" else is_first

    def _currency(self) -> str:
        if self._only_currency is None:
            self._only_currency = values.only_currency(self._rows.text)
        return self._only_currency

    def _labelled_fields(self, number: int, column: int, cell: Cell, label: Label) -> Iterator[_Candidate]:
        others = labels.within(cell.text) if cell.text.count(":") > 1 else []
        # Each label's value ends where the next label begins.
        ends = [*(other.start for other in others), len(cell.text)]
        for each, end in zip([label, *others], ends, strict=True):
            place = Place(cell, each.end, end)
            field = None
            rest = cell.text[each.end : end]
            # The rest of an amount's label may be a currency, or the base as in "VAT 7 % on 130.00 EUR".
            belongs_to_label = not rest or (
                len(rest) <= LONGEST_VALUE
                and each.kind == "amount"
                and (_means_nothing(rest) or _BASE.match(rest) is not None)
            )
            if not belongs_to_label:
                # The value is in the same cell. Without a colon, it must be all that follows, because the rest may be
                # a sentence.
                field = self._typed_value(each, place, is_whole=not each.has_colon) if each.is_known else None
                field = field or (self._text_value(each, place) if each.has_colon else None)
            elif end == len(cell.text):
                cells = self._rows.rows[number][column + 1 :]
                field = self._value_to_the_right(cells, each) or self._value_below(number, cell, each)
            if field:
                yield field

    def _value_to_the_right(self, cells: Sequence[Cell], label: Label) -> _Candidate | None:
        for cell in cells:
            place = Place(cell, 0, len(cell.text))
            if label.is_known and (field := self._typed_value(label, place, is_whole=True)):
                return field
            if labels.at_start(cell.text):
                return None
            if not label.is_known:
                return self._text_value(label, place)
            # The base of a percentage may stand between a label and its amount.
            if label.kind != "amount":
                return None
        return None

    def _value_below(self, number: int, cell: Cell, label: Label) -> _Candidate | None:
        under = self._rows.below(number, cell)
        if under is None or not label.is_known:
            return None
        # The heading of a table column is not the label of a single value.
        third = self._rows.below(number + 1, under)
        if third is not None and any(map(str.isdigit, third.text)) and not labels.at_start(third.text):
            return None
        if label.is_weak:
            # Ambiguous words can be trusted in a row of labels.
            row_labels = [labels.at_start(each.text) for each in self._rows.rows[number]]
            if len(row_labels) < 2 or not all(each and each.is_known for each in row_labels):
                return None
        return self._typed_value(label, Place(under, 0, len(under.text)), is_whole=True)

    def _typed_value(self, label: Label, place: Place, *, is_whole: bool) -> _Candidate | None:
        text = place.cell.text[place.start : place.end][: 2 * LONGEST_VALUE]
        for value in islice(self._values(label.kind, text), _FEW):
            rest = text[: value.start] if label.kind in _SELF_EVIDENT else text[: value.start] + text[value.end :]
            if is_whole and not _means_nothing(rest):
                continue
            where = Place(place.cell, place.start + value.start, place.start + value.end)
            return label.name, label.kind, where, value.text[:LONGEST_VALUE], value.confidence
        return None

    def _values(self, kind: str, text: str) -> Iterator[Value]:
        if kind == "date":
            return values.dates(text, self._month_first)
        if kind == "amount":
            return values.amounts(text, self._currency)
        return _READERS[kind](text)

    def _text_value(self, label: Label, place: Place) -> _Candidate | None:
        text = place.cell.text
        value = text[place.start : place.end].strip()
        name = label.name if not label.is_known else labels.name_of(text[label.start : label.end])
        if not value or not name or len(value) > LONGEST_VALUE:
            return None
        start = text.index(value, place.start)
        where = Place(place.cell, start, start + len(value))
        for kind in ("date", "amount", "iban", "vat_id", "email"):
            for typed in islice(self._values(kind, value), _FEW):
                if _means_nothing(value[: typed.start] + value[typed.end :]):
                    return name, kind, where, typed.text, typed.confidence
        return name, "text", where, value, SHAPED

    def _letter_date(self) -> tuple[Place, Value] | None:
        """Return the only date of the page, or the first one that stands alone on its line, except for a place."""
        if only := _only(values.dates(self._rows.text, None)):
            return self._rows.place(only.start, only.end), only
        for (cell,) in (row for row in self._rows.rows if len(row) == 1):
            for date in islice(values.dates(cell.text, None), 1):
                if date.end == len(cell.text) and _PLACE.fullmatch(cell.text, 0, date.start):
                    return Place(cell, date.start, date.end), date
        return None

    def _by_form(self) -> Iterator[_Candidate]:
        """Yield values that are recognised without a label, with a lower confidence unless a checksum confirms them."""
        for kind, reader in (("iban", values.ibans), ("vat_id", values.vat_ids)):
            for value in islice(reader(self._rows.text), _FEW):
                if value.confidence != DOUBTFUL and value.text not in self._seen_values:
                    sure = CHECKED if value.confidence == CHECKED else BARE
                    yield kind, kind, self._rows.place(value.start, value.end), value.text, sure
        for kind, find in (
            ("email", values.emails),
            ("phone", values.international_phones),
            ("amount", values.amounts_of_money),
        ):
            if kind not in self._seen_kinds and (only := _only(find(self._rows.text))):
                yield kind, kind, self._rows.place(only.start, only.end), only.text, BARE
        if "date" not in self._seen_kinds and (alone := self._letter_date()):
            place, date = alone
            yield "date", "date", place, date.text, BARE


_READERS = {
    "number": values.numbers,
    "iban": values.ibans,
    "vat_id": values.vat_ids,
    "email": values.emails,
    "phone": values.phones,
}


def _only(candidates: Iterator[Value]) -> Value | None:
    """Return the value, unless there are other ones."""
    few = list(islice(candidates, _FEW))
    return few[0] if len({value.text for value in few}) == 1 else None


def _means_nothing(rest: str) -> bool:
    return not any(map(str.isalnum, values.without_currencies(rest)))
