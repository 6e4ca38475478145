"""What a word is, for searching: the same for what is stored and for what is asked, on every database.

Case, accents and the ways in which a letter may be written make no difference: `Müller` and `MULLER` are one word,
`Straße` and `STRASSE` another.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

# Nobody types longer ones, and indexes have limits of their own.
LONGEST = 64
_RUN, _PLAIN = re.compile(r"\S+"), re.compile(r"[0-9A-Za-z]+")


class Word(NamedTuple):
    word: str
    # Where it stands in the text that it was read in.
    start: int
    end: int


class _Letters(dict[int, str]):
    """What each character is written as: letters and digits, nothing for an accent, a space for what parts words."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _folded(chr(code))
        return found


def words(text: str) -> list[str]:
    return [word[:LONGEST] for word in text.translate(_LETTERS).split()]


def words_with_places(text: str) -> Iterator[Word]:
    """The same words as `words`."""
    for run in _RUN.finditer(text):
        if run[0].isascii():
            for found in _PLAIN.finditer(run[0]):
                start = run.start() + found.start()
                yield Word(found[0].lower()[:LONGEST], start, start + len(found[0]))
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
        # A character that parts words, or is several of them.
        for other in others:
            if letters:
                yield Word(letters[:LONGEST], start, end)
            letters, start, end = other, place, place + 1
    if letters:
        yield Word(letters[:LONGEST], start, end)


def _folded(character: str) -> str:
    if unicodedata.category(character) == "Cf":
        return ""
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(_letter(part) for part in parts)


def _letter(part: str) -> str:
    if part.isalnum():
        return part
    return "" if unicodedata.category(part)[0] == "M" else " "


_LETTERS = _Letters()
