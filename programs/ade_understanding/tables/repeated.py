"""Finds tables that only repeat the line items of an invoice, which are a table of their own with known columns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

# A table repeats the line items if this share of its cells beside them is in their columns.
SHARE = 0.95
# How far a cell may be beside its column, as a share of the page.
MARGIN = 0.02
# A row with so many filled columns and so many numbers is a line.
FEWEST_COLUMNS, FEWEST_NUMBERS = 3, 2

Table = Mapping[str, Any]
Box = Sequence[float]


def repeats(table: Table, line_items: Table | None) -> bool:
    """Return whether a table has no line that the line items lack, and nothing beside their columns.

    What it has above and below them are the address, the heading and the totals, which are fields.
    """
    if line_items is None:
        return False
    spans = _spans(line_items)
    inside = outside = 0
    for row in table["rows"]:
        cells = [cell for cell in row if cell["text"] and cell["box"]]
        if not cells:
            continue
        columns = spans.get(cells[0]["page"])
        if columns is None:
            # The table goes on on a page that the line items do not reach.
            return False
        in_columns = [cell for cell in cells if _column_of(cell["box"], columns) is not None]
        top, bottom = min(box[1] for box in columns.values()), max(box[3] for box in columns.values())
        if top <= (cells[0]["box"][1] + cells[0]["box"][3]) / 2 <= bottom:
            inside, outside = inside + len(in_columns), outside + len(cells) - len(in_columns)
        elif _is_line(in_columns, columns):
            return False
    return inside > 0 and inside >= SHARE * (inside + outside)


def _is_line(cells: Sequence[Mapping[str, Any]], columns: Mapping[int, Box]) -> bool:
    """Return whether cells above or below the line items look like one more of them: a total has only an amount."""
    filled = {_column_of(cell["box"], columns) for cell in cells}
    numbers = sum(any(map(str.isdigit, cell["text"])) for cell in cells)
    return len(filled) >= FEWEST_COLUMNS and numbers >= FEWEST_NUMBERS


def _column_of(box: Box, columns: Mapping[int, Box]) -> int | None:
    across = (box[0] + box[2]) / 2
    return next(
        (column for column, (left, _, right, _) in columns.items() if left - MARGIN <= across <= right + MARGIN), None
    )


def _spans(line_items: Table) -> dict[int, dict[int, list[float]]]:
    """Return by page and column the box around the cells."""
    spans: dict[int, dict[int, list[float]]] = defaultdict(dict)
    for row in line_items["rows"]:
        for column, cell in enumerate(row):
            if cell["text"] and (box := cell["box"]):
                span = spans[cell["page"]].setdefault(column, list(box))
                for side, larger in enumerate((min, min, max, max)):
                    span[side] = larger(span[side], box[side])
    return spans
