"""Makes of all pages of a document what is kept of it: its text, the pieces of it that are searched, and its fields."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ade_extractor import DIGEST
from ade_extractor.chunking import chunks


class Digested(NamedTuple):
    pages: int
    chunks: int


def write(segments: Iterable[Path], directory: Path) -> Digested:
    """Of the pages in these files."""
    pages = [(page["number"], page["text"]) for page in _pages(segments)]
    found = chunks(pages)
    made = {
        "chunks": [chunk._asdict() for chunk in found],
        "fields": [],
        "pages": len(pages),
        "text": "\n\n".join(text for _, text in pages),
    }
    (directory / DIGEST).write_text(json.dumps(made, ensure_ascii=False, allow_nan=False), "utf-8")
    return Digested(len(pages), len(found))


def _pages(segments: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """One segment in memory at a time: words with their places are most of it."""
    for segment in segments:
        yield from json.loads(segment.read_bytes())["pages"]
