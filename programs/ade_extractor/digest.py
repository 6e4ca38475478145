"""Combines all pages of a document into what is stored: its text, its chunks, its fields and tables, and its type."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ade_extractor import DIGEST
from ade_extractor.chunking import chunks
from ade_extractor.einvoices import Found
from ade_extractor.limits import MOST_CHARACTERS
from ade_extractor.pages import Box
from ade_extractor.placed import PlacedWords
from ade_extractor.trouble import too_large
from ade_understanding.recognition import recognise, shows_signs
from ade_understanding.tables.data import Tables, may_have
from ade_understanding.vocabulary import LINE_ITEMS

# Places of words show which words form a column and where a field is. In longer documents, they are only computed for
# pages that may have fields or tables, because they take as long as reading the page.
ALL_WORDS_PAGES = 50

Page = dict[str, Any]
Field = dict[str, Any]
# Returns the words of a page with their places, as JSON, and its ruling lines.
LookAt = Callable[[int], tuple[str, list[Box]]]


def write(segments: Iterable[Path], directory: Path, look_at: LookAt, e_invoice: Found) -> tuple[int, int]:
    """Digest the pages of these files, one file at a time, and return the numbers of pages and chunks."""
    texts: list[tuple[int, str]] = []
    pages = _Pages(look_at, e_invoice)
    recognised = recognise(pages.read(_pages(segments, texts)))
    page_fields = [*pages.service_fields.values(), *recognised.fields]
    exact = e_invoice.understand(page_fields)
    tables = exact.tables if exact else []
    line_items = next((table for table in tables if table["name"] == LINE_ITEMS), None)
    if line_items is None and recognised.line_items:
        line_items = recognised.line_items
        tables = [*tables, line_items]
    document_chunks = chunks(texts)
    result = {
        "chunks": [chunk._asdict() for chunk in document_chunks],
        "fields": exact.fields if exact else page_fields,
        "pages": len(texts),
        "problems": exact.problems if exact else [],
        "tables": [*tables, *pages.tables.result(line_items)],
        "text": "\n\n".join(text for _, text in texts),
        "type": (exact and exact.type) or recognised.type,
        "words": pages.placed.pages,
    }
    (directory / DIGEST).write_text(json.dumps(result, ensure_ascii=False, allow_nan=False), "utf-8")
    return len(texts), len(document_chunks)


class _Pages:
    """Shows the pages of a document, one at a time, to everything that reads them."""

    def __init__(self, look_at: LookAt, e_invoice: Found) -> None:
        self._look_at, self._e_invoice = look_at, e_invoice
        self.tables, self.placed = Tables(), PlacedWords()
        # The surest field of each name that a service has recognised.
        self.service_fields: dict[str, Field] = {}

    def read(self, pages: Iterable[tuple[Page, int]]) -> Iterator[Page]:
        """Yield the pages whose fields are to be recognised, with the places of their words."""
        for page, pages_total in pages:
            number, text, rulings = page["number"], page["text"], list[Box]()
            has_fields = "fields" in page
            # Words only have places on pages that have a size.
            if not has_fields and not page["words"] and text and page["width"] is not None:
                if pages_total > ALL_WORDS_PAGES and not (may_have(text) or shows_signs(text)):
                    self._e_invoice.add_page(number, text, [])
                    continue
                encoded, rulings = self._look_at(number)
                page["words"] = json.loads(encoded)
            self._e_invoice.add_page(number, text, page["words"])
            self.placed.add(number, page["words"])
            if self._e_invoice.is_drawn_from_it:
                continue
            self.tables.add_page(number, page["words"], rulings, (page["width"], page.get("height")), page["tables"])
            if has_fields:
                self._add_service_fields(page["fields"])
            else:
                yield page

    def _add_service_fields(self, fields: Sequence[Field]) -> None:
        for field in fields:
            other = self.service_fields.get(field["name"])
            if other is None or (other["confidence"] or 0) < (field["confidence"] or 0):
                self.service_fields[field["name"]] = field


def _pages(segments: Iterable[Path], texts: list[tuple[int, str]]) -> Iterator[tuple[Page, int]]:
    """Yield each page with the number of pages of its document, and add its text to `texts`."""
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
            yield page, document["pages_total"]
