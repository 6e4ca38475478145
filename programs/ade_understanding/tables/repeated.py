"""Finds tables that only repeat the line items of an invoice, which are a table of their own with known columns."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A table repeats the line items if this share of its cells beside them is in their columns.
SHARE = 0.95
# How far a cell may be beside its column, as a share of the page.
MARGIN = 0.02

Table = Mapping[str, Any]
Box = Sequence[float]


def repeats(table: Table, line_items: Table | None) -> bool:
    """Return whether everything that a table has between the first and the last line item is in their columns.

    What it has above and below are the address, the heading and the totals, which are fields.
    """
    if line_items is None:
        return False
    spans = _spans(line_items)
    inside = outside = 0
    for _, page, box in _cells(table):
        columns = spans.get(page, {})
        middle, across = (box[1] + box[3]) / 2, (box[0] + box[2]) / 2
        top, bottom = _range(columns)
        if top <= middle <= bottom:
            is_in_column = any(left - MARGIN <= across <= right + MARGIN for left, _, right, _ in columns.values())
            inside, outside = inside + is_in_column, outside + (not is_in_column)
    return inside > 0 and inside >= SHARE * (inside + outside)


def _spans(line_items: Table) -> dict[int, dict[int, list[float]]]:
    """Return by page and column the box around the cells."""
    spans: dict[int, dict[int, list[float]]] = defaultdict(dict)
    for column, page, box in _cells(line_items):
        span = spans[page].setdefault(column, list(box))
        for side, larger in enumerate((min, min, max, max)):
            span[side] = larger(span[side], box[side])
    return spans


def _range(columns: Mapping[int, Box]) -> tuple[float, float]:
    return min((box[1] for box in columns.values()), default=1.0), max(
        (box[3] for box in columns.values()), default=0.0
    )


def _cells(table: Table) -> Iterator[tuple[int, int, Box]]:
    """Yield column, page and box of the cells that have a place and a text."""
    for row in table["rows"]:
        for column, cell in enumerate(row):
            if cell["text"] and cell["box"]:
                yield column, cell["page"], cell["box"]
