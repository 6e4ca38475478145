"""Splits texts into the words that searches compare. Stored texts and queries are split alike, on every database.

Case, accents and variants of a letter make no difference: `Müller` equals `MULLER`, and `Straße` equals `STRASSE`.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

# Longer words are cut. Real words are shorter, and database indexes have their own limits.
LONGEST = 64
_RUN, _PLAIN = re.compile(r"\S+"), re.compile(r"[0-9A-Za-z]+")


class Word(NamedTuple):
    word: str
    # The word's position in the text.
    start: int
    end: int


class _Letters(dict[int, str]):
    """Maps each character to plain letters and digits. Maps an accent to "" and a separator to a space."""

    def __missing__(self, code: int) -> str:
        self[code] = letters = _fold(chr(code))
        return letters


def words(text: str) -> list[str]:
    return [word[:LONGEST] for word in text.translate(_LETTERS).split()]


def words_with_places(text: str) -> Iterator[Word]:
    """Yield the same words as `words`, with their positions in the text."""
    for run in _RUN.finditer(text):
        if run[0].isascii():
            for word in _PLAIN.finditer(run[0]):
                start = run.start() + word.start()
                yield Word(word[0].lower()[:LONGEST], start, start + len(word[0]))
        else:
            yield from _letter_by_letter(run[0], run.start())


def _letter_by_letter(text: str, offset: int) -> Iterator[Word]:
    letters, start, end = "", 0, 0
    for place, character in enumerate(text, offset):
        first, *others = _LETTERS[ord(character)].split(" ")
        if letters and first:
            end = place + 1
        elif first:
            start, end = place, place + 1
        letters += first
        # The character is a separator or stands for several words.
        for other in others:
            if letters:
                yield Word(letters[:LONGEST], start, end)
            letters, start, end = other, place, place + 1
    if letters:
        yield Word(letters[:LONGEST], start, end)


def _fold(character: str) -> str:
    if unicodedata.category(character) == "Cf":
        return ""
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    # Keep letters and digits, drop accents, and replace everything else by a space.
    kept = (part for part in parts if part.isalnum() or unicodedata.category(part)[0] != "M")
    return "".join(part if part.isalnum() else " " for part in kept)


_LETTERS = _Letters()
