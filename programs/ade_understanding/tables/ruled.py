"""Tables whose cells have borders."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from ade_understanding.tables.grid import Cell
from ade_understanding.tables.layout import Word, lines_of, rows_of
from ade_understanding.tables.rules import Frame, Rule, positions

# The width of the narrowest column and the height of the lowest row. Closer lines are one double line.
NARROWEST, LOWEST = 7.0, 4.5
# A cell across this many rows may be a column without lines.
HIGH = 5
# With more fields between its lines, it is a drawing.
MOST_FIELDS = 20_000


def cells_of(frame: Frame, words: Sequence[Word], em: float) -> list[Cell] | None:
    """Return the cells between the lines, or None if there are too many. Fields without a line between are one cell."""
    box = frame.box
    downs = positions([box.left, *(rule.at for rule in frame.down), box.right], NARROWEST)
    acrosses = positions([box.top, *(rule.at for rule in frame.across), box.bottom], LOWEST)
    if len(downs) > 3:
        # A line below a paragraph in the first column is no border.
        acrosses = [
            at
            for at in acrosses
            if at in (acrosses[0], acrosses[-1])
            or any(abs(rule.at - at) <= LOWEST and rule.end > downs[1] + NARROWEST for rule in frame.across)
        ]
    gaps = _gaps(acrosses, downs, words, em)
    acrosses = sorted([*acrosses, *gaps])
    across = [*frame.across, *(Rule(at, box.left, box.right) for at in gaps)]
    rows, columns = len(acrosses) - 1, len(downs) - 1
    if rows < 1 or columns < 1:
        return []
    if rows * columns > MOST_FIELDS:
        return None
    fields = [(row, column) for row in range(rows) for column in range(columns)]
    at_row, at_column = _by_position(across, acrosses, LOWEST), _by_position(frame.down, downs, NARROWEST)
    open_right = {
        (row, column)
        for row in range(rows)
        for column in range(columns - 1)
        if not _separates(at_column[column + 1], (acrosses[row] + acrosses[row + 1]) / 2)
    }
    open_below = {
        (row, column)
        for row in range(rows - 1)
        for column in range(columns)
        if not _separates(at_row[row + 1], (downs[column] + downs[column + 1]) / 2)
    }
    # Grow each cell to the right, and then down as long as its whole width is open.
    taken: set[tuple[int, int]] = set()
    cells = []
    for row, column in fields:
        if (row, column) in taken:
            continue
        right = column
        while (row, right) in open_right and (row, right + 1) not in taken:
            right += 1
        bottom = row
        while all((bottom, each) in open_below for each in range(column, right + 1)) and all(
            (bottom + 1, each) in open_right for each in range(column, right)
        ):
            bottom += 1
        taken.update((r, c) for r in range(row, bottom + 1) for c in range(column, right + 1))
        cells.append(Cell([], row, column, bottom, right))
    _fill(cells, words, downs, acrosses)
    cells = [part for cell in cells for part in _split(cell, downs, em)]
    return [part for cell in cells for part in _unstacked(cell, acrosses)]


def _gaps(acrosses: Sequence[float], downs: Sequence[float], words: Sequence[Word], em: float) -> list[float]:
    """Return the middles of gaps between lines of text that run through all columns of a high row."""
    result = []
    for top, bottom in pairwise(acrosses):
        inside = sorted((word for word in words if top < word.middle < bottom), key=lambda word: word.top)
        end = inside[0].bottom if inside else bottom
        for number, word in enumerate(inside):
            if word.top - end > 0.8 * em:
                above = {_index(downs, each.centre) for each in inside[:number]}
                below = {_index(downs, each.centre) for each in inside[number:]}
                if len(above & below) > 1 and len(below) >= len(above):
                    result.append((word.top + end) / 2)
            end = max(end, word.bottom)
    return result


def _by_position(rules: Sequence[Rule], bounds: Sequence[float], apart: float) -> list[list[Rule]]:
    result: list[list[Rule]] = [[] for _ in bounds]
    for rule in rules:
        index = bisect_left(bounds, rule.at - apart)
        while index < len(bounds) and bounds[index] <= rule.at + apart:
            result[index].append(rule)
            index += 1
    return result


def _separates(rules: Sequence[Rule], at: float) -> bool:
    return any(rule.start <= at <= rule.end for rule in rules)


def _fill(cells: Sequence[Cell], words: Sequence[Word], downs: Sequence[float], acrosses: Sequence[float]) -> None:
    places = {
        (row, column): cell
        for cell in cells
        for row in range(cell.top, cell.bottom + 1)
        for column in range(cell.left, cell.right + 1)
    }
    inside: dict[int, list[Word]] = {id(cell): [] for cell in cells}
    for word in words:
        row, column = _index(acrosses, word.middle), _index(downs, word.centre)
        if (cell := places.get((row, column))) is not None:
            inside[id(cell)].append(word)
    for cell in cells:
        cell.words = inside[id(cell)]


def _index(bounds: Sequence[float], at: float) -> int:
    """Return the number of the part that has this place; -1 if it is outside."""
    if not bounds[0] <= at <= bounds[-1]:
        return -1
    return max(bisect_left(bounds, at) - 1, 0)


def _split(cell: Cell, downs: Sequence[float], em: float) -> list[Cell]:
    """Split a wide cell whose texts lie in columns of their own: some rows have no lines, but only no colour."""
    if cell.left == cell.right:
        return [cell]
    parts: dict[int, list[Word]] = {}
    for line in lines_of(cell.words, em):
        for chunk in line.chunks:
            first, last = _index(downs, chunk.words[0].centre), _index(downs, chunk.words[-1].centre)
            if first != last:
                return [cell]
            parts.setdefault(first, []).extend(chunk.words)
    if len(parts) < 2:
        return [cell]
    return [Cell(words, cell.top, column, cell.bottom, column) for column, words in parts.items()]


def _unstacked(cell: Cell, acrosses: Sequence[float]) -> list[Cell]:
    """Split a high cell that has a text for each row: its column has no lines between them."""
    height = cell.bottom - cell.top + 1
    if height < HIGH:
        return [cell]
    parts: dict[int, list[Word]] = {}
    for row in rows_of(cell.words):
        parts.setdefault(_index(acrosses, row[0].middle), []).extend(row)
    if len(parts) < 0.7 * height:
        return [cell]
    return [Cell(words, row, cell.left, row, cell.right) for row, words in parts.items()]
