"""Reads Word documents: paragraphs and tables in order, whatever elements wrap them."""

from collections.abc import Callable
from pathlib import Path

import docx
from lxml import etree

from ade_extractor import archives
from ade_extractor.pages import Reading
from ade_extractor.paging import Flow
from ade_extractor.trouble import reading

WHAT = "This Word document"
PARTS = ("word/document.xml", "word/document2.xml", "[Content_Types].xml")
# The parsed tree takes ten times as much memory.
MOST_XML_BYTES = 100 << 20
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
# Elements that are not text, were deleted, or repeat what precedes them.
_SKIPPED = {
    *(_W + name for name in ("rPr", "tblPr", "trPr", "tcPr", "sectPr", "del", "moveFrom")),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic"


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    archives.examine(path, WHAT, parts=PARTS, most_xml_bytes=MOST_XML_BYTES)
    with reading(WHAT):
        body = docx.Document(str(path)).element.body
    flow = Flow()
    walk = etree.iterwalk(body, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        if event == "end":
            if tag in _ENDS:
                _ENDS[tag](flow)
        elif tag in _SKIPPED:
            walk.skip_subtree()
        elif tag == _W + "pPr":
            walk.skip_subtree()
            page_break = element.find(_W + "pageBreakBefore")
            if page_break is not None and page_break.get(_W + "val") not in ("0", "false", "off"):
                flow.page_break()
        elif tag == _W + "br" and element.get(_W + "type") == "page":
            flow.page_break()
        elif tag == _W + "t":
            flow.text(element.text or "")
        elif tag in _STARTS:
            _STARTS[tag](flow)
    return flow.reading(first, last)


_STARTS: dict[str, Callable[[Flow], None]] = {
    _W + "p": Flow.end_paragraph,
    _W + "tab": lambda flow: flow.text("\t"),
    _W + "br": lambda flow: flow.text("\n"),
    _W + "cr": lambda flow: flow.text("\n"),
    _W + "noBreakHyphen": lambda flow: flow.text("-"),
    _W + "tbl": Flow.start_table,
    _W + "tr": Flow.start_row,
    _W + "tc": Flow.start_cell,
    _PICTURE: lambda flow: flow.pages.image(),
}
_ENDS: dict[str, Callable[[Flow], None]] = {
    _W + "p": Flow.end_paragraph,
    _W + "tbl": Flow.end_table,
    _W + "tr": Flow.end_row,
    _W + "tc": Flow.end_cell,
}
