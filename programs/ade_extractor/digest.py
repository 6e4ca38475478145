"""Combines all pages of a document into what is stored: its text, its chunks for searching, and its fields."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

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
            number, text = page["number"], page["text"]
            texts.append((number, text))
            characters += len(text)
            if characters > MOST_CHARACTERS:
                problem = f"it has more than {MOST_CHARACTERS:,} characters of text by page {number}"
                raise too_large("This document", problem)
            if "fields" in page:
                # The service that read the page has recognised its fields.
                page_fields += page["fields"]
                continue
            words, tables = page["words"], page["tables"]
            # Words only have places on pages that have a size.
            lacks_places = not words and text and page["width"] is not None
            is_long = document["pages_total"] > ALL_WORDS_PAGES
            if lacks_places and is_long and not fields.find(number, text, [], tables):
                continue
            if lacks_places:
                words = json.loads(words_of(number))
            page_fields += fields.find(number, text, words, tables)
    document_chunks = chunks(texts)
    result = {
        "chunks": [chunk._asdict() for chunk in document_chunks],
        "fields": fields.merge(page_fields),
        "pages": len(texts),
        "text": "\n\n".join(text for _, text in texts),
    }
    (directory / DIGEST).write_text(json.dumps(result, ensure_ascii=False, allow_nan=False), "utf-8")
    return len(texts), len(document_chunks)
