"""Extracts plain text from feeds in a single pass, limited to some thousand characters."""

import html
import re

# Markup takes several times as much space as its text.
MARKUP_PER_CHARACTER = 10
# An unfinished tag ends where the next one starts, so each character is examined once.
_TAG = re.compile(r"<!--|-->|<[/!?a-zA-Z][^<>]*>?")
_LOOKS_LIKE_HTML = re.compile(
    r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
)
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_SILENT = ("script", "style", "template", "noscript", "iframe", "svg", "math", "head")
# Inline elements do not separate the words around them.
# fmt: off
_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})
# fmt: on
# Control characters, zero-width and other invisible characters, and characters that change the text direction.
_UNWANTED = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def plain(text: str, most: int, *, is_html: bool) -> str:
    """Return the text in one line. Plain text that looks like HTML is treated as HTML."""
    text = text[: MARKUP_PER_CHARACTER * most]
    if is_html or _LOOKS_LIKE_HTML.search(text):
        visible = without_tags(text)
        has_tags, text = visible != text, html.unescape(visible)
        # If tags appear only after unescaping, the text was escaped twice.
        if not has_tags and _LOOKS_LIKE_HTML.search(text):
            text = html.unescape(without_tags(text))
    return shorten(clean(text), most)


def without_tags(markup: str) -> str:
    """Remove tags, comments and the content of scripts. If one of these is never closed, the rest is dropped."""
    parts: list[str] = []
    silent = ""
    at = 0
    for match in _TAG.finditer(markup):
        tag = match[0]
        if not silent:
            parts.append(markup[at : match.start()])
        at = match.end()
        silent, between = _after(tag, silent)
        parts.append(between)
    if not silent:
        parts.append(markup[at:])
    return "".join(parts)


def clean(text: str) -> str:
    """Return the text in one line, without characters that databases refuse or that change the text direction."""
    if _SURROGATE.search(text):
        # Join surrogate pairs and drop lone halves.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return _SPACES.sub(" ", _UNWANTED.sub("", text)).strip()


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _after(tag: str, silent: str) -> tuple[str, str]:
    """Return what to skip from here on ("" for nothing), and what replaces the tag."""
    if silent == "-->":
        return ("" if tag == silent else silent), ""
    if tag == "<!--":
        return silent or "-->", ""
    if tag == "-->":
        return silent, "" if silent else tag
    match = _NAME.match(tag)
    name = match[1].lower() if match else ""
    if silent:
        return ("" if name == silent and tag.startswith("</") else silent), ""
    if name in _SILENT and not tag.startswith("</") and not tag.endswith("/>"):
        return name, " "
    return "", "" if name in _INLINE else " "
