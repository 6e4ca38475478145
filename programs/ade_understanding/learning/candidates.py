"""The values on a document that a lesson chooses from, each with what stands to its left and above it."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from ade_understanding.learning.layout import Box, Cell, Sheet
from ade_understanding.learning.spellings import NUMBERS, READERS, folded

# Words of a label that are compared, the nearest ones.
LABEL_WORDS = 6
# Lines above a value that are searched for the heading of its column.
_LINES_ABOVE = 12
# Lines of one text begin within this part of the page's width, and follow each other with at most this many between.
_ALIGNED = 0.015
_NEXT_LINES = 2
MOST = 20_000
_LONGEST_SPAN = 9
_WORD = re.compile(r"\S+")

Piece = tuple[Cell, int, int]


class Candidate:
    """A value on a page. Texts may go on below, so they may have several pieces."""

    def __init__(self, sheet: Sheet, line: int, cell: int, pieces: Sequence[Piece], **read: str) -> None:
        self.sheet, self.line, self.cell, self.pieces = sheet, line, cell, pieces
        self.text = "\n".join(of.text[start:end] for of, start, end in pieces)
        self.normal = read.get("normal") or folded(self.text)
        self.style, self.currency = read.get("style", ""), read.get("currency", "")

    @cached_property
    def box(self) -> Box:
        boxes = [cell.box(start, end) for cell, start, end in self.pieces]
        left, top, right, bottom = zip(*boxes, strict=True)
        return [min(left), min(top), max(right), max(bottom)]

    @property
    def starts_cell(self) -> bool:
        return not any(map(str.isalnum, self.pieces[0][0].text[: self.pieces[0][1]]))

    @property
    def ends_cell(self) -> bool:
        return not any(map(str.isalnum, self.pieces[0][0].text[self.pieces[0][2] :]))

    @cached_property
    def left(self) -> tuple[list[str], int]:
        """Return the words of the label to the left, and the number of cells in between."""
        cell, start, _ = self.pieces[0]
        if words := label_words(cell.text[:start]):
            return words, 0
        cells = self.sheet.lines[self.line]
        for skipped, number in enumerate(range(self.cell - 1, -1, -1)):
            if cells[number].has_letters:
                return label_words(cells[number].text), skipped
        return [], 0

    @cached_property
    def above(self) -> list[str]:
        """Return the words of the nearest cell above that is no number."""
        left, _, right, _ = self.box
        for line in range(self.line - 1, max(self.line - 1 - _LINES_ABOVE, -1), -1):
            for cell in self.sheet.lines[line]:
                if cell.left < right and left < cell.right and cell.has_letters:
                    return label_words(cell.text)
        return []


class Document:
    """The first and last pages of a document, and its candidates by kind and length."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        self.sheets = sheets
        self._known: dict[tuple[str, int], list[Candidate]] = {}

    def candidates(self, kind: str, words: int) -> list[Candidate]:
        key = (kind, 0 if kind in READERS else words)
        if key not in self._known:
            self._known[key] = list(islice(self._find(kind, words), MOST))
        return self._known[key]

    def with_value(self, kind: str, value: str, normal: str) -> list[Candidate]:
        """Return the places where a value is printed."""
        if kind in READERS:
            return [each for each in self.candidates(kind, 1) if each.normal == normal]
        if kind in NUMBERS:
            wanted = folded(value)
            spans = (each for words in range(1, _LONGEST_SPAN + 1) for each in self._spans(words, wanted))
            return list(islice(spans, MOST))
        return list(islice(self._texts(tokens(value)), MOST))

    def texts(self, lines: int, *, is_label_inside: bool, to_end: bool, words: int) -> Iterator[Candidate]:
        """Yield texts that begin a cell, or follow a label within one, and go on below for this many lines."""
        for sheet, line, number, cell in self._cells():
            starts = [match.start() for match in _WORD.finditer(cell.text)]
            for first in range(1, len(starts)) if is_label_inside else (0,):
                end = len(cell.text)
                if not to_end and first + words < len(starts):
                    end = starts[first + words] - 1
                pieces: list[Piece] = [(cell, starts[first], end)]
                at = line
                while len(pieces) < lines and (found := _below(sheet, at, cell.words[first].left)):
                    at, _, under = found
                    pieces.append((under, 0, len(under.text)))
                yield Candidate(sheet, line, number, pieces)

    def _find(self, kind: str, words: int) -> Iterator[Candidate]:
        if kind not in READERS:
            yield from self._spans(words, None)
            return
        for sheet, line, number, cell in self._cells():
            for value in READERS[kind](cell.text):
                read = {"normal": value.normal, "style": value.style, "currency": value.currency}
                yield Candidate(sheet, line, number, [(cell, value.start, value.end)], **read)

    def _spans(self, words: int, wanted: str | None) -> Iterator[Candidate]:
        """Yield runs of words that have a digit, or that have the wanted letters and digits."""
        for sheet, line, number, cell in self._cells():
            found = list(_WORD.finditer(cell.text))
            for first, last in zip(found, found[words - 1 :], strict=False):
                start, end = trimmed(cell.text, first.start(), last.end())
                text = cell.text[start:end]
                if folded(text) == wanted if wanted is not None else any(map(str.isdigit, text)):
                    yield Candidate(sheet, line, number, [(cell, start, end)])

    def _texts(self, wanted: Sequence[str]) -> Iterator[Candidate]:
        """Yield the places where these words follow each other, also across lines."""
        for sheet, line, number, cell in self._cells():
            for match in _WORD.finditer(cell.text):
                if wanted and folded(match[0]) == wanted[0] and (pieces := _consume(sheet, line, cell, match, wanted)):
                    yield Candidate(sheet, line, number, pieces)

    def _cells(self) -> Iterator[tuple[Sheet, int, int, Cell]]:
        for sheet in self.sheets:
            for line, cells in enumerate(sheet.lines):
                for number, cell in enumerate(cells):
                    yield sheet, line, number, cell


def label_words(text: str) -> list[str]:
    """Return the last words of a label. Long numbers in it change from document to document."""
    words = [folded(word) for word in text.split()[-2 * LABEL_WORDS :]]
    return ["#" if sum(map(str.isdigit, word)) >= 4 else word for word in words if word][-LABEL_WORDS:]


def tokens(text: str) -> list[str]:
    return list(filter(None, map(folded, text.split())))


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out punctuation at both ends."""
    while start < end and not (text[start].isalnum() or text[start] in "+-"):
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return start, end


def _consume(sheet: Sheet, line: int, cell: Cell, first: re.Match[str], wanted: Sequence[str]) -> list[Piece] | None:
    """Return the pieces of a text that begins with this word, or None if it goes on with other words."""
    pieces: list[Piece] = []
    left = cell.words[cell.starts.index(first.start())].left if first.start() in cell.starts else cell.left
    start, at = first.start(), 0
    while True:
        end = start
        for match in _WORD.finditer(cell.text, start):
            word = folded(match[0])
            if at < len(wanted) and word and word != wanted[at]:
                return None
            if at == len(wanted):
                break
            end, at = match.end(), at + bool(word)
        pieces.append((cell, start, end))
        if at == len(wanted):
            return pieces
        found = _below(sheet, line, left)
        if found is None:
            return None
        line, _, cell = found
        start = 0


def _below(sheet: Sheet, line: int, left: float) -> tuple[int, int, Cell] | None:
    for number in range(line + 1, min(line + 1 + _NEXT_LINES, len(sheet.lines))):
        for index, cell in enumerate(sheet.lines[number]):
            if abs(cell.left - left) < _ALIGNED:
                return number, index, cell
    return None
