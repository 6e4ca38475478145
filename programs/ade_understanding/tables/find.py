"""Finds the tables of a page, from its words and ruling lines."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ade_understanding.tables import columns, judging, ruled, rules, unruled
from ade_understanding.tables.grid import Cell, Grid
from ade_understanding.tables.layout import BULLETS, Box, Line, Word, em_of, lines_of, near_of
from ade_understanding.tables.rules import Frame, Rule

# A page with more is not examined.
MOST_WORDS = 8_000
# With more, the lines of a page are a drawing.
MOST_PAIRS = 250_000
# The length of the shortest line above a table.
SHORTEST = 60.0
# Without rules, only wide gaps show columns.
WIDE = 1.0
# Without rules, a table has at least this many lines.
FEWEST_LINES = 3
# Between two parts of a table without rules: lines without gaps, and the distance in ems.
MOST_BETWEEN, FARTHEST = 2, 5.0
# So many lines of a part show its columns.
MOST_COMPARED = 12
# In ems. So far from a chart, texts belong to it.
BESIDE = 3.0


def find(words: Sequence[Sequence[Any]], rulings: Sequence[Sequence[float]], width: float, height: float) -> list[Grid]:
    """Return the tables from the top. Words and rulings have places in fractions of the page."""
    if not words or len(words) > MOST_WORDS:
        return []
    left = [Word(w[0], w[1] * width, w[2] * height, w[3] * width, w[4] * height) for w in words]
    across, down = rules.split(rulings, width, height)
    if len(across) * len(down) > MOST_PAIRS:
        across, down = [], []
    return sorted(_Page(left, across, down).grids(), key=lambda grid: (grid.box.top, grid.box.left))


class _Page:
    def __init__(self, words: list[Word], across: list[Rule], down: list[Rule]) -> None:
        self.across, self.down = across, down
        self.em = em_of(words)
        # Words that are not in a table yet. Fonts of bullets are high, with the bullet at the foot.
        self.words = [
            word._replace(top=max(word.top, word.bottom - 1.4 * self.em)) if word.text in BULLETS else word
            for word in words
        ]
        self.near = near_of(words, self.em)

    def grids(self) -> Iterator[Grid]:
        taken: list[Box] = []
        for frame in rules.frames(self.across, self.down):
            box = frame.box
            inside = [word for word in self.words if box.holds(word)]
            cells = ruled.cells_of(frame, inside, self.em) if len(frame.across) > 1 else []
            if cells is None or judging.is_drawing(cells):
                # The texts of a chart are also next to it.
                box = Box(*(edge + side * BESIDE * self.em for edge, side in zip(box, (-1, -1, 1, 1), strict=True)))
                self._take([word for word in self.words if box.holds(word)])
            elif grid := self._framed(frame, cells, inside):
                self._take(inside)
                yield grid
            else:
                continue
            taken.append(box)
        self.across = [rule for rule in self.across if not any(_is_in(rule, box) for box in taken)]
        for grid in self._between_rules():
            self._take([word for cell in grid.cells for word in cell.words])
            yield grid
        yield from self._without_rules()

    def _take(self, words: Sequence[Word]) -> None:
        used = set(words)
        self.words = [word for word in self.words if word not in used]

    def _framed(self, frame: Frame, cells: list[Cell], words: Sequence[Word]) -> Grid | None:
        grid = Grid(cells).compact()
        if judging.has_rows_in_cells(grid, self.em):
            grid = unruled.grid_of(words, frame.across, frame.down, self.em, self.near)
        grid = grid.trimmed()
        return grid if judging.is_table(grid) and grid.fullness > judging.LEAST_FULL else None

    def _between_rules(self) -> Iterator[Grid]:
        """Find tables between horizontal lines of the same length."""
        rest = sorted(self.across, key=lambda rule: -rule.length)
        while rest and rest[0].length >= SHORTEST:
            longest = rest[0]
            stack = [r for r in rest if r.start >= longest.start - 5 and r.end <= longest.end + 5]
            full = [rule for rule in stack if rule.length >= 0.93 * longest.length]
            parts = [rule for rule in stack if rule not in full]
            # A line of pieces counts as a whole.
            for at in rules.positions(rule.at for rule in parts):
                pieces = [rule for rule in parts if abs(rule.at - at) <= 3]
                if sum(rule.length for rule in pieces) > 0.8 * longest.length:
                    full.append(Rule(at, min(rule.start for rule in pieces), max(rule.end for rule in pieces)))
            rest = [rule for rule in rest if rule not in stack]
            yield from self._stacked(sorted(full), sorted(parts))

    def _stacked(self, full: list[Rule], parts: list[Rule]) -> Iterator[Grid]:
        run: list[Rule] = []
        for above, below in pairwise(full):
            lines = lines_of(self._between(above, below), self.em, self.near)
            several = sum(len(line.chunks) > 1 for line in lines)
            # A single text that does not start on the left is a header across columns.
            is_centred = len(lines) == 1 and lines[0].chunks[0].left > above.start + 3 * self.em
            if several >= len(lines) / 2 or is_centred or (run and len(lines) == 1):
                run = run or [above]
                run.append(below)
                continue
            if grid := self._of_run(run, parts):
                yield grid
            run = []
        if grid := self._of_run(run, parts):
            yield grid

    def _between(self, above: Rule, below: Rule) -> list[Word]:
        box = Box(above.start - 3, above.at, above.end + 3, below.at)
        return [word for word in self.words if box.holds(word)]

    def _of_run(self, run: list[Rule], parts: list[Rule]) -> Grid | None:
        if len(run) < 2:
            return None
        start, end = min(rule.start for rule in run), max(rule.end for rule in run)
        top, last = run[0]._replace(start=start, end=end), run[-1]
        # The line above the header may be shorter.
        for part in reversed(parts):
            if 0 < top.at - part.at < 3 * self.em and self._between(part._replace(start=top.start, end=top.end), top):
                top = top._replace(at=part.at)
        words = self._between(top, last)
        if not words:
            return None
        across = [*run, *(part for part in parts if top.at <= part.at < last.at)]
        middles = ((rule, (rule.start + rule.end) / 2) for rule in self.down)
        down = [rule for rule, middle in middles if top.start < rule.at < top.end and top.at < middle < last.at]
        grid = unruled.grid_of(words, across, down, self.em, self.near).trimmed()
        return grid if judging.is_table(grid) and not judging.is_prose(grid, trusts_header=True) else None

    def _without_rules(self) -> Iterator[Grid]:
        """Find tables in lines with wide gaps."""
        runs: list[list[Line]] = []
        between: list[Line] = []
        for run in self._runs():
            if len(run) == 1 and len(run[0].chunks) < 2:
                between.append(run[0])
            elif runs and self._belong_together(runs[-1], between, run):
                runs[-1] += [*between, *run]
                between = []
            else:
                runs.append(run)
                between = []
        for run in runs:
            if grid := self._of_lines(run):
                yield grid

    def _runs(self) -> Iterator[list[Line]]:
        """Yield lines with gaps that follow each other, and each other line alone."""
        run: list[Line] = []
        for line in lines_of(self.words, self.em, max(WIDE, self.near)):
            is_near = bool(run) and line.top - run[-1].bottom < 1.6 * self.em
            if run and not (is_near and len(line.chunks) > 1):
                yield run
                run = []
            if len(line.chunks) > 1:
                run.append(line)
            else:
                yield [line]
        if run:
            yield run

    def _belong_together(self, above: list[Line], between: list[Line], below: list[Line]) -> bool:
        """Return whether lines have the same columns as those above, with at most titles of parts between them."""
        if len(between) > MOST_BETWEEN or below[0].top - above[-1].bottom > FARTHEST * self.em:
            return False
        above, below = above[-MOST_COMPARED:], below[:MOST_COMPARED]
        one, other = (columns.find(lines, self.em) for lines in (above, below))
        return len(columns.find([*above, *below], self.em)) >= max(len(one), len(other))

    def _of_lines(self, run: list[Line]) -> Grid | None:
        while run and len(run[-1].chunks) < 2:
            run.pop()
        if sum(len(line.chunks) > 1 for line in run) < FEWEST_LINES or judging.are_sentences(run):
            return None
        words = [word for line in run for word in line.words]
        grid = unruled.grid_of(words, [], [], self.em, self.near).trimmed()
        is_table = judging.is_table(grid, FEWEST_LINES) and grid.rows - grid.headers > 1 and judging.has_numbers(grid)
        return grid if is_table and not judging.is_prose(grid) else None


def _is_in(rule: Rule, box: Box) -> bool:
    return box.top - 3 <= rule.at <= box.bottom + 3 and box.left - 3 <= rule.start and rule.end <= box.right + 3
