"""Tables whose cells have no borders, or not on all sides: cells are found by where the words are."""

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ade_understanding.tables import columns
from ade_understanding.tables.columns import Columns
from ade_understanding.tables.grid import Cell, Grid
from ade_understanding.tables.layout import Chunk, Line, Word, is_number, lines_of
from ade_understanding.tables.rules import Rule, positions

# A line across this share of the table separates all of its columns.
FULL = 0.85
# In ems. Lines whose middles are closer are beside each other: a value is next to the middle of a longer text.
BESIDE = 0.65
# Without lines, at most this many lines of text at the top may be headers.
MOST_HEADERS = 4
_CONTINUES = re.compile(r"[a-zäöüß(]")

# A chunk with its first and its last column.
Placed = tuple[Chunk, int, int]


def grid_of(words: Sequence[Word], across: Sequence[Rule], down: Sequence[Rule], em: float, near: float) -> Grid:
    fixed = positions([rule.at for rule in down if rule.length > 3 * em])
    lines = lines_of(words, em, near, fixed)
    if not lines:
        return Grid([])
    count = _headers(lines, across)
    head, body = lines[:count], lines[count:]
    found = columns.find(body, em, fixed)
    if not count:
        count = _guessed_headers(lines, found, em, fixed)
        head, body = lines[:count], lines[count:]
        found = columns.find(body, em, fixed) if count else found
    width = max(word.right for word in words) - min(word.left for word in words)
    across = [rule for rule in across if rule.length < FULL * width]
    header_cells, height = _header(head, found, across, down, em)
    cells = header_cells + _body(body, found, em, height, across)
    return Grid(cells, height).compact()


def _headers(lines: Sequence[Line], across: Sequence[Rule]) -> int:
    """Return how many lines are above the first rule that has lines above and below; 0 if there is none."""
    left = min(line.chunks[0].left for line in lines)
    right = max(line.chunks[-1].right for line in lines)
    for at in positions(rule.at for rule in across):
        level = [rule for rule in across if abs(rule.at - at) < 3]
        covered = sum(max(0.0, min(rule.end, right) - max(rule.start, left)) for rule in level)
        above = sum(line.middle < at for line in lines)
        is_full = covered >= FULL * (right - left) and min(rule.start for rule in level) < left + (right - left) / 50
        if is_full and 0 < above < len(lines):
            return above
    return 0


def _guessed_headers(lines: Sequence[Line], found: Columns, em: float, fixed: Sequence[float]) -> int:
    """Return the number of lines at the top without which the others have more columns, or no numbers."""
    best, most = 0, len(found)
    for count in range(1, min(MOST_HEADERS, len(lines) // 2) + 1):
        if (now := len(columns.find(lines[count:], em, fixed))) > most:
            best, most = count, now
    if best:
        return best
    count = 0
    while count < min(MOST_HEADERS, len(lines) - 1) and not any(
        is_number(word.text) for chunk in lines[count].chunks[1:] for word in chunk.words
    ):
        count += 1
    return count if count < min(MOST_HEADERS, len(lines) - 1) else 0


def _header(
    lines: Sequence[Line], found: Columns, across: Sequence[Rule], down: Sequence[Rule], em: float
) -> tuple[list[Cell], int]:
    """Return the cells of the header and its number of rows."""
    cells: list[Cell] = []
    for line in lines:
        for chunk, first, last in _placed_header(line, found, across, down, em):
            above = next((cell for cell in reversed(cells) if cell.left <= last and first <= cell.right), None)
            is_same = above is not None and (above.left, above.right) == (first, last)
            if above is not None and is_same and not _is_ruled_between(above, chunk, across, em):
                above.words = [*above.words, *chunk.words]
            else:
                cells.append(Cell(list(chunk.words), 0, first, 0, last))
    # A cell is one row below the lowest cell above it, and reaches down to the cell below it.
    for index, cell in enumerate(cells):
        over = [other for other in cells[:index] if other.left <= cell.right and cell.left <= other.right]
        cell.top = max((other.top + 1 for other in over), default=0)
    height = max((cell.top + 1 for cell in cells), default=0)
    for index, cell in enumerate(cells):
        under = [other for other in cells[index + 1 :] if other.left <= cell.right and cell.left <= other.right]
        cell.bottom = min((other.top - 1 for other in under), default=height - 1)
    return cells, height


def _is_ruled_between(above: Cell, chunk: Chunk, across: Sequence[Rule], em: float) -> bool:
    top, bottom = max(word.middle for word in above.words), min(word.middle for word in chunk.words)
    if bottom - top > 3 * em:
        return True
    return any(top < r.at < bottom and r.start < chunk.right and chunk.left < r.end for r in across)


def _placed_header(line: Line, found: Columns, across: Sequence[Rule], down: Sequence[Rule], em: float) -> list[Placed]:
    """Return the chunks of a line of the header with their columns. Lines below and beside a text show its columns."""
    result: list[Placed] = []
    edges = [rule.at for rule in down if rule.start < line.middle < rule.end]
    under = [_rule_under(chunk, line, across, em) for chunk in line.chunks]
    for chunk, rule in zip(line.chunks, under, strict=True):
        start = end = 0.0
        if rule and under.count(rule) == 1:
            start, end = rule.start - em, rule.end + em
        elif edges:
            centre = (chunk.left + chunk.right) / 2
            start = max((at for at in edges if at < centre), default=found.spans[0][0] - em)
            end = min((at for at in edges if at > centre), default=found.spans[-1][1] + em)
        inside = [number for number, (left, right) in enumerate(found.spans) if start < (left + right) / 2 < end]
        if inside and not (result and inside[0] <= result[-1][2]) and (len(inside) > 1 or edges):
            result.append((chunk, inside[0], inside[-1]))
        else:
            result = _joined(result, _placed([chunk], found, em, is_header=True), found)
    return result


def _placed(chunks: Sequence[Chunk], found: Columns, em: float, *, is_header: bool = False) -> list[Placed]:
    """Return the chunks of a line with the first and the last column of each."""
    result: list[Placed] = []
    is_alone = len(chunks) == 1 and not is_header
    for chunk in chunks:
        for part in _parts(chunk, found, em) if not is_alone else [chunk]:
            first, last = _range(part, found)
            # The title of a section starts in the first column and runs over others.
            result = _joined(result, [(part, first, 0 if is_alone and first == 0 else last)], found)
    return result


def _joined(placed: list[Placed], others: Sequence[Placed], found: Columns) -> list[Placed]:
    """Append the others. Two in the same column become one."""
    for part, first, last in others:
        if placed and first <= placed[-1][2]:
            first = min(placed[-1][2] + 1, len(found) - 1)
            last = max(first, last)
        if placed and first <= placed[-1][2]:
            before, left, right = placed.pop()
            placed.append((Chunk([*before.words, *part.words]), left, max(right, last)))
        else:
            placed.append((part, first, last))
    return placed


def _rule_under(chunk: Chunk, line: Line, across: Sequence[Rule], em: float) -> Rule | None:
    """Return the rule that underlines this chunk."""
    under = [
        rule
        for rule in across
        if -0.3 * em < rule.at - line.middle < 1.6 * em
        and rule.start - em <= chunk.left
        and chunk.right <= rule.end + em
    ]
    return min(under, key=lambda rule: rule.at, default=None)


def _parts(chunk: Chunk, found: Columns, em: float) -> list[Chunk]:
    """Split a chunk where a space is on a cut, unless it is one text across columns."""
    parts: list[list[Word]] = [[chunk.words[0]]]
    for before, word in pairwise(chunk.words):
        one, other = found.at(before.centre), found.at(word.centre)
        is_cut = any(before.right - em * 0.1 <= cut <= word.left + em * 0.1 for cut in found.cuts[one:other])
        gap = word.left - before.right
        if one != other and is_cut and (gap > 0.35 * em or (is_number(before.text) and is_number(word.text))):
            parts.append([word])
        else:
            parts[-1].append(word)
    return [Chunk(part) for part in parts]


def _range(chunk: Chunk, found: Columns) -> tuple[int, int]:
    """Return the columns that a text is in: those that it overlaps by a good part of its own or their width."""
    inside = [
        number
        for number, (left, right) in enumerate(found.spans)
        if min(right, chunk.right) - max(left, chunk.left) > 0.4 * min(right - left, chunk.right - chunk.left)
    ]
    if not inside:
        number = found.at((chunk.left + chunk.right) / 2)
        return number, number
    return inside[0], inside[-1]


def _body(lines: Sequence[Line], found: Columns, em: float, first_row: int, across: Sequence[Rule]) -> list[Cell]:
    rows: list[list[Placed]] = []
    previous: Line | None = None
    gaps = [below.middle - above.middle for above, below in pairwise(lines)]
    pitch = median(gaps) if gaps else 0.0
    for line in lines:
        placed = _placed(line.chunks, found, em)
        if previous is not None and (
            line.middle - previous.middle < BESIDE * em
            or _continues(rows[-1], placed, line.middle - previous.middle, pitch)
        ):
            rows[-1] += placed
        else:
            rows.append(placed)
        previous = line
    cells: list[Cell] = []
    for number, row in enumerate(rows, first_row):
        at: dict[int, Cell] = {}
        for chunk, first, last in row:
            if first in at:
                at[first].words = [*at[first].words, *chunk.words]
            else:
                at[first] = Cell(list(chunk.words), number, first, number, last)
        cells += at.values()
    return cells


def _continues(row: list[Placed], placed: list[Placed], gap: float, pitch: float) -> bool:
    """Return whether a line belongs to the row above: it only goes on with texts of it."""
    taken = {first for _, first, _ in row}
    if any(first not in taken for _, first, _ in placed) or len(placed) >= max(len(row), 2):
        return False
    if gap > 1.15 * pitch:
        return False
    if gap < 0.9 * pitch:
        return True
    return all(_CONTINUES.match(chunk.text) for chunk, _, _ in placed)
