"""Splits feeds whose syntax is broken, so that an item that is never closed does not swallow the items after it."""

import re
from itertools import pairwise
from xml.parsers import expat

from ade_feedreader import MOST_ITEMS

# Items that are parsed one by one; each takes a millisecond. If there are more, they are parsed together.
MOST_ALONE = 200
_ITEM = re.compile(r"<(?:\w{1,20}:)?(?:item|entry)[\s>]")
_ITEM_END = re.compile(r"</(?:\w{1,20}:)?(?:item|entry)\s{0,10}>")


def first_error(text: str) -> str:
    """Return the line and the kind of the first syntax error, or "" if there is none."""
    # A separator makes expat check namespace prefixes too.
    parser = expat.ParserCreate("utf-8", " ")
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        return f"line {error.lineno}: {expat.ErrorString(error.code)}"
    return ""


def without_later_items(text: str) -> tuple[str, int]:
    """Return the text without the items after the first MOST_ITEMS, and the original count if some were removed.

    The text after the last item stays. Parsing every item of a huge feed would take a minute.
    """
    starts = _starts(text)
    if len(starts) <= MOST_ITEMS:
        return text, 0
    return text[: starts[MOST_ITEMS]] + text[_end(text, starts[-1], starts[-1]) :], len(starts)


def split(text: str) -> list[str]:
    """Split a feed: all well-formed items go into the first part, and each broken item into a part of its own."""
    starts = _starts(text)
    if not starts:
        return [text]
    head = text[: starts[0]]
    items = [text[start : _end(text, start, end, end)] for start, end in pairwise([*starts, len(text)])]
    whole = [item for item in items if _is_whole(item)]
    others = [item for item in items if not _is_whole(item)]
    if len(others) > MOST_ALONE:
        others = ["".join(others)]
    # Close all elements that are still open at the end of the head.
    names: list[str] = []
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, _attributes: names.append(name)
    parser.EndElementHandler = lambda _name: names.pop()
    try:
        parser.Parse(head.encode(), False)
        closing = "".join(f"</{name}>" for name in reversed(names))
    except expat.ExpatError:
        closing = ""
    return [head + "".join(whole) + closing, *(head + other for other in others)]


def _starts(text: str) -> list[int]:
    return [match.start() for match in _ITEM.finditer(text)]


def _end(text: str, start: int, otherwise: int, before: int | None = None) -> int:
    """Return where the last closing tag of an item in the range ends, or `otherwise` if there is none."""
    ends = [match.end() for match in _ITEM_END.finditer(text, start, len(text) if before is None else before)]
    return ends[-1] if ends else otherwise


def _is_whole(item: str) -> bool:
    try:
        expat.ParserCreate("utf-8").Parse(item.encode(), True)
    except expat.ExpatError:
        return False
    return True
