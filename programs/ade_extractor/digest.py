"""Combines all pages of a document into what is stored: its text, its chunks for searching, and its fields."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ade_extractor import DIGEST, fields
from ade_extractor.chunking import chunks
from ade_extractor.fields import Field
from ade_extractor.limits import MOST_CHARACTERS
from ade_extractor.trouble import too_large

# Places of words show which words form a column and where a field is. In longer documents, they are only computed for
# pages that have fields, because they take as long as reading the page.
ALL_WORDS_PAGES = 50


class Digested(NamedTuple):
    pages: int
    chunks: int


def write(segments: Iterable[Path], directory: Path, words_of: Callable[[int], str]) -> Digested:
    """Digest the pages of these files. `words_of` returns the words of a page with their places, as JSON."""
    pages: list[tuple[int, str]] = []
    read: list[Field] = []
    characters = 0
    for page, pages_total in _pages(segments):
        pages.append((page["number"], page["text"]))
        characters += len(page["text"])
        if characters > MOST_CHARACTERS:
            raise too_large(
                "This document", f"it has more than {MOST_CHARACTERS:,} characters of text by page {page['number']}"
            )
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
        # The service that read the page has recognised its fields.
        told: list[Field] = page["fields"]
        return told
    number, text, words, tables = (page[name] for name in ("number", "text", "words", "tables"))
    # Words only have places on pages that have a size.
    if not words and text and page["width"] is not None:
        if is_long and not fields.found(number, text, [], tables):
            return []
        words = json.loads(words_of(number))
    return fields.found(number, text, words, tables)


def _pages(segments: Iterable[Path]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the pages with the total number, keeping one segment in memory at a time."""
    for segment in segments:
        read = json.loads(segment.read_bytes())
        for page in read["pages"]:
            yield page, read["pages_total"]
