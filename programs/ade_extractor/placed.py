"""Collects the words of pages with their places, from which ADE learns where a sender prints its values."""

from collections.abc import Sequence
from typing import Any

# Words of one document. The first pages count most, and a page has some hundreds.
MOST_WORDS = 100_000

Page = dict[str, Any]


class PlacedWords:
    def __init__(self) -> None:
        self.pages: list[Page] = []
        self._room = MOST_WORDS

    def add(self, number: int, words: Sequence[Any]) -> None:
        """Keep the words of a page: lists of a word and its box as fractions of the page."""
        if words and len(words) <= self._room:
            self._room -= len(words)
            self.pages.append({"number": number, "words": words})
