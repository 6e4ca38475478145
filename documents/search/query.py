"""Parses the text that a person types into the search box. Any text is valid, so there are no syntax errors."""

import re
from dataclasses import dataclass

from documents import folding

MOST_CHARACTERS = 500
# Each term costs one lookup.
MOST_TERMS = 32
# "a phrase", -"excluded phrase", word, -excluded, begin*. An unclosed quotation extends to the end of the text.
_TERM = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)(?:"|$)|(?P<word>[^\s"]+))')


@dataclass(frozen=True)
class Term:
    """Consecutive words. The last word may be a prefix."""

    words: tuple[str, ...]
    is_beginning: bool = False
    is_quoted: bool = False

    def is_in(self, line: str) -> bool:
        """Return whether the line contains the term. The line must have a space before and after each word."""
        return self.text in line

    @property
    def text(self) -> str:
        return f" {' '.join(self.words)}{'' if self.is_beginning else ' '}"


@dataclass(frozen=True)
class Query:
    terms: tuple[Term, ...]
    excluded: tuple[Term, ...]
    # The text to compare by meaning, without excluded terms.
    text: str
    notes: tuple[str, ...]

    @property
    def is_strict(self) -> bool:
        return bool(self.excluded) or any(term.is_quoted for term in self.terms)

    def allows(self, line: str) -> bool:
        """Return whether a text with these words may be a result. This applies to matches by meaning too."""
        quoted = (term for term in self.terms if term.is_quoted)
        return all(term.is_in(line) for term in quoted) and not any(term.is_in(line) for term in self.excluded)


def parse(text: str) -> Query:
    notes = []
    if len(text) > MOST_CHARACTERS:
        notes.append(f"Only the first {MOST_CHARACTERS} characters were used.")
    terms: list[Term] = []
    excluded: list[Term] = []
    included: list[str] = []
    for match in _TERM.finditer(text[:MOST_CHARACTERS]):
        is_quoted = match["phrase"] is not None
        word = match["phrase"] if is_quoted else match["word"]
        term = Term(tuple(folding.words(word)), word.endswith("*"), is_quoted)
        if not term.words:
            continue
        if match["minus"]:
            excluded.append(term)
        else:
            terms.append(term)
            included.append(word)
    if len(terms) + len(excluded) > MOST_TERMS:
        notes.append(f"Only the first {MOST_TERMS} words were used.")
        terms, excluded = terms[:MOST_TERMS], excluded[: max(0, MOST_TERMS - len(terms))]
    if excluded and not terms:
        notes.append("Enter at least one word to find, not only words to exclude.")
    # Remove lone surrogates and replace NUL, because models and services reject them.
    printable = " ".join(included).encode(errors="ignore").decode().replace("\0", " ")
    return Query(tuple(dict.fromkeys(terms)), tuple(dict.fromkeys(excluded)), printable, tuple(notes))
