"""Reads HTML as a person would see it. Nothing is fetched, and no script runs."""

import re
from html.parser import HTMLParser
from pathlib import Path

from ade_extractor import limits
from ade_extractor.pages import Reading
from ade_extractor.paging import Flow
from ade_extractor.text import decode
from ade_extractor.trouble import too_large

# Elements that start and end a line.
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html",
    "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "title", "ul", "caption",
})
# fmt: on
_SILENT = frozenset(("script", "style"))
_ROWS = {"tr": Flow.start_row, "td": Flow.start_cell, "th": Flow.start_cell, "table": Flow.start_table}
_ROW_ENDS = {"tr": Flow.end_row, "td": Flow.end_cell, "th": Flow.end_cell, "table": Flow.end_table}
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,10}=\s{0,10}["']?\s{0,10}([\w.:-]{1,40})""", re.IGNORECASE)
_CHARSET_WITHIN = 2048
_SPACES = re.compile(r"\s+")


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    size = path.stat().st_size
    if size > limits.MOST_HTML_BYTES:
        raise too_large("This HTML file", f"it has {size:,} bytes (limit: {limits.MOST_HTML_BYTES:,})")
    data = path.read_bytes()
    declared = _CHARSET.search(data[:_CHARSET_WITHIN])
    flow = Flow()
    feed(decode(data, declared[1].decode("ascii", "replace") if declared else None), flow)
    return flow.reading(first, last)


def feed(markup: str, flow: Flow) -> None:
    reader = _Reader(flow)
    reader.feed(markup)
    reader.close()
    flow.end_paragraph()


class _Reader(HTMLParser):
    def __init__(self, flow: Flow) -> None:
        super().__init__(convert_charrefs=True)
        self._flow = flow
        self._silent = ""
        self._preserved = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent = tag
        elif tag in _ROWS:
            _ROWS[tag](self._flow)
        elif tag in _BLOCKS:
            self._flow.end_paragraph()
        elif tag == "br":
            self._flow.text("\n")
        elif tag == "img":
            self._flow.pages.image()
        self._preserved += tag == "pre"

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Treat `<script/>` as a start tag, like browsers do."""
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""
        elif tag in _ROW_ENDS:
            _ROW_ENDS[tag](self._flow)
        elif tag in _BLOCKS:
            self._flow.end_paragraph()
        if tag == "pre":
            self._preserved = max(self._preserved - 1, 0)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._flow.text(data if self._preserved else _SPACES.sub(" ", data))
