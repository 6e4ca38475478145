"""Prepares untrusted text for pages: makes invisible characters visible, and indents JSON without changing it."""

import json
import re
import unicodedata
from itertools import accumulate

from documents.names import JOINERS

# Deeper JSON is not indented, because each level adds two spaces to every line within it.
DEEPEST = 40
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s"{}\[\],:]+')
_UNUSUAL = re.compile("[^\n\t -~]")


def plain(text: str) -> str:
    """Escape control characters and characters that change the direction of the surrounding text."""
    return _UNUSUAL.sub(_visible, text.replace("\r\n", "\n"))


def indented(text: str, most: int) -> str | None:
    """Return the JSON indented, cut to `most` characters and a line "…"; None if it is invalid or nested too deeply.
    The text is not converted to objects and back, so duplicate keys are kept and 1.10 stays 1.10.
    """
    tokens = _TOKEN.findall(text)
    depths = accumulate((token in _OPENING) - (token in _CLOSING) for token in tokens)
    if max(depths, default=0) > DEEPEST:
        return None
    try:
        # Keep numbers as text, because they may have any length.
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    depth = length = 0
    before = ""
    for token in tokens:
        depth -= token in _CLOSING
        part = _space(before, token, depth) + token
        parts.append(part)
        length += len(part)
        if length > most:
            return f"{''.join(parts)[:most]}\n…"
        depth += token in _OPENING
        before = token
    return "".join(parts)


def _visible(match: re.Match[str]) -> str:
    c = match[0]
    if c.isprintable() or c in JOINERS or unicodedata.category(c) == "Zs":
        return c
    return c.encode("unicode_escape", "surrogatepass").decode()


def _space(before: str, token: str, depth: int) -> str:
    """Return the space or line break between two tokens."""
    if before == ":":
        return " "
    is_empty = before in _OPENING and token in _CLOSING
    is_new_line = before == "," or before in _OPENING or token in _CLOSING
    return f"\n{'  ' * depth}" if is_new_line and not is_empty else ""
