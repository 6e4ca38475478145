"""Cuts the text of pages into pieces about one topic: between paragraphs if possible, otherwise between sentences."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The length that one vector still represents well, and that fits into a snippet.
LONGEST = 900
# A chunk that leaves less room than this is finished. Short pieces are joined, because a heading alone says little.
SHORTEST = 200
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


class Chunk(NamedTuple):
    position: int
    page: int
    text: str


def chunks(pages: Sequence[tuple[int, str]]) -> list[Chunk]:
    """Return the chunks of (number, text) pages. No chunk crosses a page, so each has one page to be shown on."""
    texts: list[tuple[int, str]] = []
    for number, page in pages:
        pieces: list[str] = []
        for paragraph in map(str.strip, _PARAGRAPH.split(page)):
            if paragraph:
                pieces += _cut(paragraph) if len(paragraph) > LONGEST else [paragraph]
        waiting = ""
        for piece in pieces:
            if waiting and len(waiting) + len(piece) + 2 > LONGEST:
                texts.append((number, waiting))
                waiting = ""
            waiting = f"{waiting}\n\n{piece}" if waiting else piece
            if len(waiting) >= LONGEST - SHORTEST:
                texts.append((number, waiting))
                waiting = ""
        if waiting:
            texts.append((number, waiting))
    return [Chunk(position, number, text) for position, (number, text) in enumerate(texts)]


def _cut(paragraph: str) -> Iterator[str]:
    """Cut between sentences, or between the rows of a table; cut anything that is still too long at any character."""
    is_table = "\t" in paragraph
    parts = paragraph.split("\n") if is_table else _SENTENCE.split(paragraph)
    separator = "\n" if is_table else " "
    waiting = ""
    for part in parts:
        for start in range(0, len(part), LONGEST):
            piece = part[start : start + LONGEST]
            if waiting and len(waiting) + len(piece) + 1 > LONGEST:
                yield waiting
                waiting = ""
            waiting = f"{waiting}{separator}{piece}" if waiting else piece
    if waiting:
        yield waiting
