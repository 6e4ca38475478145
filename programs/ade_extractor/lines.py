"""Puts recognised words in reading order: rows from the top, each from the left."""

from json.encoder import encode_basestring
from typing import NamedTuple

from ade_extractor.pages import Box
from ade_extractor.text import clean


class Word(NamedTuple):
    text: str
    # As fractions of the page as people see it.
    box: Box


class Fragment(NamedTuple):
    """Words that belong together. Places refer to the page turned upright and level, in any unit."""

    left: float
    middle: float
    height: float
    words: list[Word]


def order(fragments: list[Fragment]) -> list[list[Word]]:
    """Return the words of each row."""
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda each: each.middle):
        row = rows[-1] if rows else []
        middle = sum(each.middle for each in row) / max(len(row), 1)
        height = min([fragment.height, *(each.height for each in row)])
        if row and abs(fragment.middle - middle) < height / 2:
            row.append(fragment)
        else:
            rows.append([fragment])
    return [[word for fragment in sorted(row) for word in fragment.words] for row in rows]


def text_of(rows: list[list[Word]]) -> str:
    return clean("\n".join(" ".join(word.text for word in row) for row in rows))


def words_of(rows: list[list[Word]]) -> str:
    """Return the words as JSON with four decimals, as on other pages."""
    words = []
    for word in (word for row in rows for word in row):
        places = ",".join(repr(round(min(max(float(place), 0.0), 1.0), 4)) for place in word.box)
        words.append(f"[{encode_basestring(clean(word.text))},{places}]")
    return f"[{','.join(words)}]"
