from collections.abc import Iterator

from documents import folding
from documents.folding import Word
from documents.search.found import Part
from documents.search.wanted import Wanted

# What fits on two lines of a page.
CHARACTERS = 240
# Characters in front of the first marked word.
BEFORE = 60


def snippet(text: str, wanted: Wanted) -> tuple[Part, ...]:
    """Return the part of a text with the most words of the query, or its beginning."""
    text = " ".join(text.split())
    matches = _wanted_in(text, wanted)
    first = max(matches, key=lambda word: _within(matches, word), default=None)
    start = _start_of_word(text, max(0, first.start - BEFORE)) if first else 0
    end = _end_of_word(text, start + CHARACTERS)
    shown = [word for word in matches if start <= word.start and word.end <= end]
    return tuple(part for part in _parts(text, start, end, shown) if part.text)


def _parts(text: str, start: int, end: int, shown: list[Word]) -> Iterator[Part]:
    if start:
        yield Part("… ", is_match=False)
    for word in shown:
        # One character may stand for two words.
        if word.start >= start:
            yield Part(text[start : word.start], is_match=False)
            yield Part(text[word.start : word.end], is_match=True)
            start = word.end
    yield Part(text[start:end], is_match=False)
    if end < len(text):
        yield Part(" …", is_match=False)


def _wanted_in(text: str, wanted: Wanted) -> list[Word]:
    words = {word for term in wanted.terms for word in term.words}
    beginnings = tuple(term.words[-1] for term in wanted.terms if term.is_beginning)
    found = folding.words_with_places(text)
    return [each for each in found if each.word in words or (beginnings and each.word.startswith(beginnings))]


def _within(matches: list[Word], first: Word) -> tuple[int, int]:
    """Return how many different words a snippet starting here would show; among equals, the earliest wins."""
    seen = {word.word for word in matches if first.start <= word.start < first.start + CHARACTERS - BEFORE}
    return len(seen), -first.start


def _start_of_word(text: str, place: int) -> int:
    return text.rfind(" ", 0, place) + 1


def _end_of_word(text: str, place: int) -> int:
    if place >= len(text):
        return len(text)
    found = text.rfind(" ", 0, place)
    # A text without spaces is cut at any character.
    return found if found > place - BEFORE else place
