"""Decides whether what looks like a table is one."""

from collections.abc import Sequence

from ade_understanding.tables.grid import Cell, Grid
from ade_understanding.tables.layout import Line, is_number, lines_of

# No page has a table with more.
MOST_COLUMNS = 500
# The share of the fields between lines that have a text. In a chart, fewer have one.
LEAST_FILLED = 0.3
# The share of a table's area that has texts.
LEAST_FULL = 0.4
# The share of the texts of a form that end with a colon.
LEAST_LABELS = 0.2
# A cell with more words is a sentence.
MOST_WORDS = 3
# The share of sentences right of the first column.
MOST_SENTENCES = 0.6


def is_table(grid: Grid, least_rows: int = 2) -> bool:
    """Return whether there are several rows and columns, and enough rows have several cells."""
    if grid.rows < least_rows or not 2 <= grid.columns <= MOST_COLUMNS or is_form(grid):
        return False
    columns: list[set[int]] = [set() for _ in range(grid.rows)]
    for cell in grid.cells:
        for row in range(cell.top, cell.bottom + 1):
            columns[row].add(cell.left)
    return sum(len(each) > 1 for each in columns) >= max(2, grid.rows * 0.4)


def are_sentences(lines: Sequence[Line]) -> bool:
    """Return whether most texts right of the first are sentences: a quick look before columns are looked for."""
    lengths = [len(chunk.words) for line in lines for chunk in line.chunks[1:]]
    return sum(length > MOST_WORDS for length in lengths) > MOST_SENTENCES * len(lengths)


def is_form(grid: Grid) -> bool:
    """Return whether the texts are labels with their values: fields, which are not the rows of a table."""
    labels = sum(bool(cell.words) and cell.words[-1].text.endswith(":") for cell in grid.cells)
    return labels >= max(2, LEAST_LABELS * len(grid.cells))


def is_drawing(cells: Sequence[Cell]) -> bool:
    """Return whether most fields between the lines are empty, as in a chart."""
    return len(cells) > 6 and sum(bool(cell.words) for cell in cells) < LEAST_FILLED * len(cells)


def is_prose(grid: Grid, *, trusts_header: bool = False) -> bool:
    """Return whether the columns are texts, as on a page that is printed in columns."""
    header = [cell for cell in grid.cells if cell.top < grid.headers]
    if trusts_header and header and all(len(cell.words) <= MOST_WORDS for cell in header):
        return False
    has_sentences = False
    for column in range(1, grid.columns):
        cells = [cell for cell in grid.cells if cell.left == column and cell.top >= grid.headers]
        short = (cell for cell in cells if len(cell.words) <= MOST_WORDS)
        numbers = sum(any(is_number(word.text) for word in cell.words) for cell in short)
        if numbers >= 0.5 * (grid.rows - grid.headers):
            return False
        has_sentences |= sum(len(cell.words) > MOST_WORDS for cell in cells) > 0.5 * len(cells)
    return has_sentences


def has_numbers(grid: Grid) -> bool:
    """Return whether at least half of the cells right of the first column have a number."""
    cells = [cell for cell in grid.cells if cell.left and cell.top >= grid.headers]
    return sum(any(is_number(word.text) for word in cell.words) for cell in cells) >= 0.5 * len(cells)


def has_rows_in_cells(grid: Grid, em: float) -> bool:
    """Return whether the lines separate only columns: a cell holds a table, or several cells stacks of numbers."""
    stacks = [0] * grid.rows
    cells = [0] * grid.rows
    for cell in grid.cells:
        lines = lines_of(cell.words, em)
        if len(lines) > 2 and sum(len(line.chunks) > 1 for line in lines) > len(lines) / 2:
            return True
        is_stack = len(lines) > 1 and all(len(line.words) < 3 and is_number(line.words[0].text) for line in lines)
        stacks[cell.top] += is_stack
        cells[cell.top] += 1
    return any(count > 1 or (count and cells[row] == 2) for row, count in enumerate(stacks))
