"""Rewrites a table with every cell in the type of its column, and records the changes."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import values
from tables import Column, Table
from values import Cell

# Misfits that are listed; all are counted.
MOST_MISFITS = 200


@dataclass(frozen=True)
class Misfit:
    place: str
    column: str
    expected: str
    found: str


@dataclass
class Changes:
    counts: Counter[str] = field(default_factory=Counter)
    misfits_by_column: Counter[str] = field(default_factory=Counter)
    misfits: list[Misfit] = field(default_factory=list)

    def note_misfit(self, place: str, column: Column, cell: Cell) -> None:
        self.misfits_by_column[column.name] += 1
        if len(self.misfits) < MOST_MISFITS:
            self.misfits.append(Misfit(place, column.name, column.kind, cell.text))


def cleaned_rows(table: Table, changes: Changes, progress: Callable[[int], None]) -> Iterator[list[str]]:
    """Yield the rows. A cell that does not fit its column keeps its text."""
    for number, cells in table.cells():
        progress(number)
        texts = [cell.text for cell in cells]
        for index, (column, cell) in enumerate(zip(table.columns, cells, strict=True)):
            changes.counts["texts cleaned"] += cell.was_cleaned
            if cell.is_empty:
                continue
            value = values.read(cell, column.kind, column.conventions)
            if value is None:
                changes.note_misfit(f"{column.letters}{number}", column, cell)
                continue
            texts[index] = values.as_text(value)
            if texts[index] != cell.text:
                changes.counts[f"{column.kind}s rewritten"] += 1
        yield texts
