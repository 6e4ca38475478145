"""Reads plain text."""

import re
from pathlib import Path

from ade_extractor import limits
from ade_extractor.pages import Reading
from ade_extractor.paging import Paginator
from ade_extractor.text import decode
from ade_extractor.trouble import too_large

_EMPTY_LINES = re.compile(r"\n[ \t]*\n")


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    size = path.stat().st_size
    if size > limits.MOST_TEXT_BYTES:
        raise too_large("This text file", f"it has {size:,} bytes (limit: {limits.MOST_TEXT_BYTES:,})")
    pages = Paginator()
    for page in decode(path.read_bytes()).split("\f"):
        pages.page_break()
        for paragraph in _EMPTY_LINES.split(page):
            pages.paragraph(paragraph)
    return pages.reading(first, last)
