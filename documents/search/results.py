from dataclasses import dataclass
from typing import NamedTuple


class Part(NamedTuple):
    text: str
    # Whether the text is a word of the query.
    is_match: bool


@dataclass(frozen=True)
class Hit:
    """A chunk that matches the query."""

    chunk_id: int
    document_id: int
    name: str
    workspace: str
    content_type: str
    position: int
    page: int | None
    snippet: tuple[Part, ...]
    # "words", "meaning" or "both".
    why: str
    # The sort key. A better place in the ranking by words or by meaning gives a higher score.
    score: float
    words_place: int | None = None
    meaning_place: int | None = None
    # Cosine similarity, from -1 to 1.
    nearness: float | None = None


@dataclass(frozen=True)
class SearchResults:
    hits: tuple[Hit, ...] = ()
    # The methods that were used: "words", "meaning" or both.
    how: tuple[str, ...] = ()
    # Messages that explain to people why results may be missing.
    notes: tuple[str, ...] = ()
    has_more: bool = False
