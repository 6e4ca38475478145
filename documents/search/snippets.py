from collections.abc import Iterator

from documents import folding
from documents.folding import Word
from documents.search.query import Query
from documents.search.results import Part

# As much as fits on two lines of a page.
CHARACTERS = 240
# Characters shown before the first marked word.
BEFORE = 60


def snippet(text: str, wanted: Query) -> tuple[Part, ...]:
    """Return the part of the text that contains the most words of the query, or the beginning if it contains none."""
    text = " ".join(text.split())
    words = {word for term in wanted.terms for word in term.words}
    beginnings = tuple(term.words[-1] for term in wanted.terms if term.is_beginning)
    matches = [
        each
        for each in folding.words_with_places(text)
        if each.word in words or (beginnings and each.word.startswith(beginnings))
    ]

    def different_words(first: Word) -> int:
        """Count the different words that a snippet starting here would show."""
        limit = first.start + CHARACTERS - BEFORE
        return len({match.word for match in matches if first.start <= match.start < limit})

    # If several places have the same number of words, take the earliest.
    first = max(matches, key=lambda match: (different_words(match), -match.start), default=None)
    start = text.rfind(" ", 0, max(0, first.start - BEFORE)) + 1 if first else 0
    end = len(text)
    if start + CHARACTERS < len(text):
        end = text.rfind(" ", 0, start + CHARACTERS)
        # A text without spaces is cut at any character.
        if end <= start + CHARACTERS - BEFORE:
            end = start + CHARACTERS
    shown = [match for match in matches if start <= match.start and match.end <= end]
    return tuple(part for part in _parts(text, start, end, shown) if part.text)


def _parts(text: str, start: int, end: int, shown: list[Word]) -> Iterator[Part]:
    if start:
        yield Part("… ", is_match=False)
    for word in shown:
        # Two words may come from the same character; mark that character only once.
        if word.start >= start:
            yield Part(text[start : word.start], is_match=False)
            yield Part(text[word.start : word.end], is_match=True)
            start = word.end
    yield Part(text[start:end], is_match=False)
    if end < len(text):
        yield Part(" …", is_match=False)
