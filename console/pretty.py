"""Prepares untrusted text for pages: invisible characters become visible, and JSON is indented without changing it."""

import json
import re
import unicodedata
from collections.abc import Sequence

from documents.names import JOINERS

# Each level adds two spaces to every line within it.
DEEPEST = 40
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s"{}\[\],:]+')
_UNUSUAL = re.compile("[^\n\t -~]")


def plain(text: str) -> str:
    """Escape control characters, and characters that change the direction of the surrounding text."""
    return _UNUSUAL.sub(_seen, text.replace("\r\n", "\n"))


def indented(text: str, most: int) -> str | None:
    """Return the JSON indented, cut to `most` characters plus a line; None if it is invalid or nested too deeply. The
    text is not converted to objects and back: duplicate keys are kept, and 1.10 stays 1.10.
    """
    tokens = _TOKEN.findall(text)
    if _depth(tokens) > DEEPEST or not _is_json(text):
        return None
    return _written(tokens, most)


def _seen(found: re.Match[str]) -> str:
    c = found[0]
    if c.isprintable() or c in JOINERS or unicodedata.category(c) == "Zs":
        return c
    return c.encode("unicode_escape", "surrogatepass").decode()


def _depth(tokens: Sequence[str]) -> int:
    depth = deepest = 0
    for token in tokens:
        depth += (token in _OPENING) - (token in _CLOSING)
        deepest = max(deepest, depth)
    return deepest


def _is_json(text: str) -> bool:
    try:
        # Numbers may have any length, so they are not converted.
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _written(tokens: Sequence[str], most: int) -> str:
    parts: list[str] = []
    depth = length = 0
    before = ""
    for token in tokens:
        depth -= token in _CLOSING
        part = _between(before, token, depth) + token
        parts.append(part)
        length += len(part)
        if length > most:
            return f"{''.join(parts)[:most]}\n…"
        depth += token in _OPENING
        before = token
    return "".join(parts)


def _between(before: str, token: str, depth: int) -> str:
    if before == ":":
        return " "
    is_empty = before in _OPENING and token in _CLOSING
    is_new_line = before == "," or before in _OPENING or token in _CLOSING
    return f"\n{'  ' * depth}" if is_new_line and not is_empty else ""
