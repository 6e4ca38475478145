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
from ade_extractor.rows import Place, Rows, Word
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

    def fields(self) -> Iterator[_Candidate]:
        labelled = (
            field
            for number, row in enumerate(self._rows.rows)
            for column, cell in enumerate(row)
            if (label := labels.at_start(cell.text))
            for field in self._labelled_fields(number, column, label)
        )
        seen_kinds: set[str] = set()
        seen_values: set[str] = set()
        for field in labelled:
            seen_kinds.add(field[1])
            seen_values.add(field[3])
            yield field
        # Values that are recognised without a label have a lower confidence unless a checksum confirms them.
        text = self._rows.text
        for kind, reader in (("iban", values.ibans), ("vat_id", values.vat_ids)):
            for value in islice(reader(text), _FEW):
                if value.confidence != DOUBTFUL and value.text not in seen_values:
                    seen_values.add(value.text)
                    sure = CHECKED if value.confidence == CHECKED else BARE
                    yield kind, kind, self._rows.place(value.start, value.end), value.text, sure
        for kind, find in (
            ("email", values.emails),
            ("phone", values.international_phones),
            ("amount", values.amounts_of_money),
        ):
            if kind not in seen_kinds and (only := _only(find(text))):
                yield kind, kind, self._rows.place(only.start, only.end), only.text, BARE
        if "date" in seen_kinds:
            return
        if only := _only(values.dates(text, None)):
            yield "date", "date", self._rows.place(only.start, only.end), only.text, BARE
            return
        # The date of a letter stands alone on its line, except for a place.
        for (cell,) in (row for row in self._rows.rows if len(row) == 1):
            for date in islice(values.dates(cell.text, None), 1):
                if date.end == len(cell.text) and _PLACE.fullmatch(cell.text, 0, date.start):
                    yield "date", "date", Place(cell, date.start, date.end), date.text, BARE
                    return

    @cached_property
    def _month_first(self) -> bool | None:
        text = self._rows.text
        is_first = values.month_first(text) if "/" in text else None
        return True if is_first is None and self._currency == "USD" else is_first

    @cached_property
    def _currency(self) -> str:
        return values.only_currency(self._rows.text)

    def _labelled_fields(self, number: int, column: int, label: Label) -> Iterator[_Candidate]:
        cell = self._rows.rows[number][column]
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
                field = self._value_nearby(number, column, each)
            if field:
                yield field

    def _value_nearby(self, number: int, column: int, label: Label) -> _Candidate | None:
        """Return the value to the right of a label, otherwise the one below it."""
        row = self._rows.rows[number]
        for cell in row[column + 1 :]:
            place = Place(cell, 0, len(cell.text))
            if label.is_known and (field := self._typed_value(label, place, is_whole=True)):
                return field
            if labels.at_start(cell.text):
                break
            if not label.is_known:
                return self._text_value(label, place)
            # The base of a percentage may stand between a label and its amount.
            if label.kind != "amount":
                break
        under = self._rows.below(number, row[column])
        if under is None or not label.is_known:
            return None
        # The heading of a table column is not the label of a single value.
        third = self._rows.below(number + 1, under)
        if third is not None and any(map(str.isdigit, third.text)) and not labels.at_start(third.text):
            return None
        if label.is_weak:
            # Ambiguous words can be trusted in a row of labels.
            row_labels = [labels.at_start(each.text) for each in row]
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
            return values.amounts(text, lambda: self._currency)
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
