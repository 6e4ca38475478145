"""Corrects cells of tables. The latest correction of a cell applies; the document's history lists all of them."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from documents import history, tables
from documents.corrections import InvalidCorrection, lock, lock_kept, quote, sentence
from documents.fields import clean_value
from documents.models import CellCorrection, DocumentTable
from documents.tables import LONGEST_TEXT, Cell
from work import clock


@dataclass(frozen=True)
class Place:
    """A cell by the name of its table, its row from 1, and the name of its column."""

    table: str
    row: int
    column: str

    def __str__(self) -> str:
        return f"{self.column} in row {self.row} of {self.table}"


@dataclass(frozen=True)
class CellResult:
    place: Place
    machine_text: str
    # None if the cell had not been corrected.
    before: str | None
    text: str

    @property
    def is_confirmed(self) -> bool:
        return self.text == self.machine_text

    def __str__(self) -> str:
        return sentence(self.place, self.machine_text, self.before, self.text)


def correct(document_id: int, place: Place, text: str, *, actor: str) -> CellResult | None:
    """Store a person's text for a cell. If it equals the machine's text, the cell is confirmed.

    Return None if there is no such document or cell. Raises InvalidCorrection if the correction is invalid.
    """
    text = clean_value(text)
    if len(text) > LONGEST_TEXT:
        message = f"The text of a cell must have at most {LONGEST_TEXT:,} characters, not {len(text):,}. Shorten it."
        raise InvalidCorrection("too_long", message)
    with transaction.atomic():
        if not lock_kept(document_id, "tables") or (cell := find(document_id, place)) is None:
            return None
        result = CellResult(place, cell.machine_text, cell.correction.text if cell.correction else None, text)
        CellCorrection.objects.update_or_create(
            document_id=document_id,
            table=place.table,
            row=place.row,
            column=place.column,
            defaults={
                "text": text,
                "machine_text": cell.machine_text,
                "corrected_by": actor[: CellCorrection._meta.get_field("corrected_by").max_length],
                "corrected_at": clock.now(),
            },
        )
        data = _data(place, cell.machine_text, result.before, text)
        history.record_cell(document_id, str(result), data, actor=actor)
    return result


def withdraw(document_id: int, place: Place, *, actor: str) -> bool:
    """Remove a correction, so that the machine's text applies again. Return False if there was no correction."""
    with transaction.atomic():
        corrections = CellCorrection.objects.filter(
            document=document_id, table=place.table, row=place.row, column=place.column
        )
        if lock(document_id) is None or (before := corrections.values_list("text", flat=True).first()) is None:
            return False
        corrections.delete()
        cell = find(document_id, place)
        machine_text = cell.machine_text if cell else None
        message = f"Withdrew the correction of {place}: from {quote(before)} back to {quote(machine_text)}."
        data = _data(place, machine_text, before, None)
        history.record_cell_withdrawal(document_id, message, data, actor=actor)
    return True


def find(document_id: int, place: Place) -> Cell | None:
    """Return the cell, or None if the document has none there."""
    table = DocumentTable.objects.filter(document=document_id, name=place.table).first()
    if table is None or not 1 <= place.row <= table.row_count:
        return None
    names = [column.name for column in tables.columns_of(table)]
    row = next(tables.rows_of(table, place.row, 1), None)
    return row.cells[names.index(place.column)] if row and place.column in names else None


def _data(place: Place, machine_text: str | None, before: str | None, text: str | None) -> dict[str, Any]:
    values = {"table": place.table, "row": place.row, "column": place.column}
    return {**values, "machine_text": machine_text, "before": before, "text": text}
