from dataclasses import dataclass
from typing import NamedTuple


class Part(NamedTuple):
    text: str
    # One of the words that were looked for.
    is_match: bool


@dataclass(frozen=True)
class Hit:
    """A chunk that was found."""

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
    # What the order follows: more for who stands further ahead, among those of its words and those of its meaning.
    score: float
    words_place: int | None = None
    meaning_place: int | None = None
    # From -1 to 1, of vectors of length 1.
    nearness: float | None = None


@dataclass(frozen=True)
class Found:
    hits: tuple[Hit, ...] = ()
    # The ways that were gone: "words", "meaning".
    how: tuple[str, ...] = ()
    # What somebody should know who misses something.
    notes: tuple[str, ...] = ()
    # Behind these there are others.
    has_more: bool = False
