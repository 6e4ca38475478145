"""Combines all pages of a document into what is stored: its text, its chunks for searching, and its fields."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ade_extractor import DIGEST, fields
from ade_extractor.chunking import chunks
from ade_extractor.fields import Field
from ade_extractor.limits import MOST_CHARACTERS
from ade_extractor.trouble import too_large

# Places of words show which words form a column and where a field is. In longer documents, they are only computed for
# pages that have fields, because they take as long as reading the page.
ALL_WORDS_PAGES = 50


def write(segments: Iterable[Path], directory: Path, words_of: Callable[[int], str]) -> tuple[int, int]:
    """Digest the pages of these files, one file at a time, and return the numbers of pages and chunks. `words_of`
    returns the words of a page with their places, as JSON.
    """
    texts: list[tuple[int, str]] = []
    page_fields: list[Field] = []
    characters = 0
    for segment in segments:
        document = json.loads(segment.read_bytes())
        for page in document["pages"]:
            texts.append((page["number"], page["text"]))
            characters += len(page["text"])
            if characters > MOST_CHARACTERS:
                problem = f"it has more than {MOST_CHARACTERS:,} characters of text by page {page['number']}"
                raise too_large("This document", problem)
            page_fields += _fields(page, words_of, is_long=document["pages_total"] > ALL_WORDS_PAGES)
    document_chunks = chunks(texts)
    result = {
        "chunks": [chunk._asdict() for chunk in document_chunks],
        "fields": fields.merge(page_fields),
        "pages": len(texts),
        "text": "\n\n".join(text for _, text in texts),
    }
    (directory / DIGEST).write_text(json.dumps(result, ensure_ascii=False, allow_nan=False), "utf-8")
    return len(texts), len(document_chunks)


def _fields(page: dict[str, Any], words_of: Callable[[int], str], *, is_long: bool) -> list[Field]:
    if "fields" in page:
        # The service that read the page has recognised its fields.
        recognised: list[Field] = page["fields"]
        return recognised
    number, text, words, tables = (page[name] for name in ("number", "text", "words", "tables"))
    # Words only have places on pages that have a size.
    if not words and text and page["width"] is not None:
        if is_long and not fields.find(number, text, [], tables):
            return []
        words = json.loads(words_of(number))
    return fields.find(number, text, words, tables)
