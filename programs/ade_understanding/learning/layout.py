"""Puts the words of pages into lines and cells."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

# Senders print their values on the first and the last pages. Longer documents and fuller pages are cut.
MOST_PAGES = 6
MOST_WORDS = 2000
# Words that are further apart than this many average character widths belong to different cells.
CELL_GAP = 1.6
LEAST_GAP = 0.006

Box = list[float]


class Word(NamedTuple):
    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


class Cell:
    """Words that stand close together on one line."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.text = " ".join(word.text for word in words)
        self.left, self.right = words[0].left, words[-1].right
        self.starts = [0, *accumulate(len(word.text) + 1 for word in words[:-1])]

    @cached_property
    def has_letters(self) -> bool:
        return sum(map(str.isalpha, self.text)) >= 2

    def box(self, start: int, end: int) -> Box:
        """Return the box around the words of this part of the text."""
        words = self.words[bisect_right(self.starts, start) - 1 : bisect_right(self.starts, max(end - 1, start))]
        return [
            min(word.left for word in words),
            min(word.top for word in words),
            max(word.right for word in words),
            max(word.bottom for word in words),
        ]


class Sheet:
    """A page. `front` counts from the first page of the document, `back` from its last."""

    def __init__(self, number: int, front: int, back: int, words: Sequence[Word]) -> None:
        self.number, self.front, self.back = number, front, back
        self.lines = [_cells(line) for line in _lines(words)]


def sheets_of(pages: Sequence[Mapping[str, Any]]) -> list[Sheet]:
    """Return the first and last pages of a document. `pages` are as `documents/words.py` stores them."""
    last = len(pages) - 1
    half = MOST_PAGES // 2
    return [
        Sheet(int(page["number"]), front, last - front, list(_words(page["words"][:MOST_WORDS])))
        for front, page in enumerate(pages)
        if front < half or last - front < half
    ]


def _words(words: Iterable[Sequence[Any]]) -> Iterable[Word]:
    """Yield the words, and those with a colon in the middle as two: `No.:4711`."""
    for text, left, top, right, bottom in words:
        head, colon, tail = str(text).partition(":")
        if not str(text).strip():
            continue
        if colon and tail and head[-1:] and not (head[-1].isdigit() and tail[0].isdigit()) and tail[0] not in "/:":
            middle = left + (right - left) * (len(head) + 1) / len(text)
            yield Word(f"{head}:", left, top, middle, bottom)
            yield Word(tail, middle + LEAST_GAP / 2, top, max(right, middle + LEAST_GAP), bottom)
        else:
            yield Word(str(text), left, top, right, bottom)


def _lines(words: Sequence[Word]) -> list[list[Word]]:
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.middle):
        line = lines[-1] if lines else []
        # In a line, the middle of each word lies within the height of the first one, because sizes may differ.
        if line and line[0].top <= word.middle <= line[0].bottom and word.top <= line[0].middle <= word.bottom:
            line.append(word)
        else:
            lines.append([word])
    return lines


def _cells(line: list[Word]) -> list[Cell]:
    line.sort(key=lambda word: word.left)
    cells: list[list[Word]] = [[line[0]]]
    for before, word in pairwise(line):
        width = max((each.right - each.left) / len(each.text) for each in (before, word))
        if word.left - before.right > max(LEAST_GAP, CELL_GAP * width):
            cells.append([])
        cells[-1].append(word)
    return [Cell(words) for words in cells]
