"""Makes of all pages of a document what is kept of it: its text, the pieces of it that are searched, and its fields."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ade_extractor import DIGEST, fields
from ade_extractor.chunking import chunks
from ade_extractor.fields import Field
from ade_extractor.limits import MOST_CHARACTERS
from ade_extractor.trouble import too_large

# Where words stand says more than their text: which belong to one column, and where a field is. In a longer document
# that is asked only of pages that have fields: it takes as long again as reading the page.
ALL_WORDS_PAGES = 50


class Digested(NamedTuple):
    pages: int
    chunks: int


def write(segments: Iterable[Path], directory: Path, words_of: Callable[[int], str]) -> Digested:
    """Of the pages in these files. `words_of` answers those of a page, with their places, as JSON."""
    pages: list[tuple[int, str]] = []
    read: list[Field] = []
    characters = 0
    for page, pages_total in _pages(segments):
        pages.append((page["number"], page["text"]))
        characters += len(page["text"])
        if characters > MOST_CHARACTERS:
            raise too_large(f"at most {MOST_CHARACTERS:,} characters of text", f"more by page {page['number']}")
        read += _fields(page, words_of, is_long=pages_total > ALL_WORDS_PAGES)
    found = chunks(pages)
    made = {
        "chunks": [chunk._asdict() for chunk in found],
        "fields": fields.merged(read),
        "pages": len(pages),
        "text": "\n\n".join(text for _, text in pages),
    }
    (directory / DIGEST).write_text(json.dumps(made, ensure_ascii=False, allow_nan=False), "utf-8")
    return Digested(len(pages), len(found))


def _fields(page: dict[str, Any], words_of: Callable[[int], str], *, is_long: bool) -> list[Field]:
    if "fields" in page:
        # Whoever has read it has told them.
        told: list[Field] = page["fields"]
        return told
    number, text, words, tables = (page[name] for name in ("number", "text", "words", "tables"))
    # Only where pages have a size do words have a place.
    if not words and text and page["width"] is not None:
        if is_long and not fields.found(number, text, [], tables):
            return []
        words = json.loads(words_of(number))
    return fields.found(number, text, words, tables)


def _pages(segments: Iterable[Path]) -> Iterator[tuple[dict[str, Any], int]]:
    """One segment in memory at a time."""
    for segment in segments:
        read = json.loads(segment.read_bytes())
        for page in read["pages"]:
            yield page, read["pages_total"]
