"""Words of a page in lines and chunks. All lengths are in points, from the top left corner of the page."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

# Words that are closer than this many ems belong together, unless both are numbers.
NEAR = 0.55
# Between numbers, any space counts.
NUMBERS_NEAR = 0.12
# The height of a line of text in ems.
LINE_HEIGHT = 1.15

# A number, a range of numbers, or what stands for one.
_NUMBER = re.compile(
    r"[(\[$€£±<>≥≤~*+−–-]{0,3}\d[\d,.'’]*(?:[–-]\d[\d,.]*)?[%)\]*†‡§]{0,3}|[—–−-]|\*{2,5}|[A-Z]{3}|[$€£]"
)
_HAS_DIGIT = re.compile(r"\d")
BULLETS = frozenset("•◦▪■●–○✓❖➢*")
# Dots between a label and its value.
LEADER = re.compile(r"\.{3,}|…{2,}|_{4,}")


class Word(NamedTuple):
    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def centre(self) -> float:
        return (self.left + self.right) / 2


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, word: Word) -> bool:
        return self.left <= word.centre <= self.right and self.top <= word.middle <= self.bottom


class Chunk(NamedTuple):
    """Words next to each other in a line."""

    words: Sequence[Word]

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


class Line(NamedTuple):
    chunks: list[Chunk]
    top: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def words(self) -> list[Word]:
        return [word for chunk in self.chunks for word in chunk.words]


def em_of(words: Sequence[Word]) -> float:
    return max(median(word.bottom - word.top for word in words) / LINE_HEIGHT, 1.0) if words else 1.0


def near_of(words: Sequence[Word], em: float) -> float:
    """Return how many ems may be between words of one text. In fonts with letters of equal width, spaces are wide."""
    gaps = [
        gap / em for row in rows_of(words) for one, other in pairwise(row) if 0 < (gap := other.left - one.right) < em
    ]
    return max(NEAR, 1.5 * median(gaps)) if len(gaps) > 10 else NEAR


def around(words: Iterable[Word]) -> Box:
    words = list(words)
    left, top = min(word.left for word in words), min(word.top for word in words)
    return Box(left, top, max(word.right for word in words), max(word.bottom for word in words))


def rows_of(words: Sequence[Word]) -> list[list[Word]]:
    """Return the words of each line from the left, with the lines from the top."""
    rows: list[list[Word]] = []
    top = bottom = 0.0
    for word in sorted(words, key=lambda word: word.top + word.bottom):
        height = min(word.bottom - word.top, bottom - top)
        is_level = abs(word.middle - (top + bottom) / 2) < 0.6 * height
        # Small print such as a footnote mark is within the height of its line.
        if rows and is_level and min(word.bottom, bottom) - max(word.top, top) > 0.5 * height:
            rows[-1].append(word)
            if bottom - top < word.bottom - word.top < 1.6 * (bottom - top):
                top, bottom = word.top, word.bottom
        else:
            rows.append([word])
            top, bottom = word.top, word.bottom
    return [sorted(row, key=lambda word: word.left) for row in rows]


def lines_of(words: Sequence[Word], em: float, near: float = NEAR, cuts: Sequence[float] = ()) -> list[Line]:
    """Return the lines with their chunks. A chunk ends at a wide gap, between numbers, and at each vertical cut."""
    lines = []
    for row in rows_of(words):
        chunks: list[list[Word]] = []
        for word in row:
            if LEADER.fullmatch(word.text):
                continue
            if chunks and not _is_apart(chunks[-1][-1], word, em, near, cuts):
                chunks[-1].append(word)
            else:
                chunks.append([word])
        if chunks:
            lines.append(Line([Chunk(chunk) for chunk in chunks], min(w.top for w in row), max(w.bottom for w in row)))
    return lines


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _is_apart(one: Word, other: Word, em: float, near: float, cuts: Sequence[float]) -> bool:
    gap = other.left - one.right
    if one.text in BULLETS and gap < 3 * em and not is_number(other.text):
        return False
    if gap > near * em:
        return True
    if any(one.centre < cut < other.centre and one.right - 1 <= cut <= other.left + 1 for cut in cuts):
        return True
    return (
        gap > NUMBERS_NEAR * em
        and is_number(one.text)
        and is_number(other.text)
        and not one.text.endswith(",")
        and bool(_HAS_DIGIT.search(one.text) and _HAS_DIGIT.search(other.text))
    )
