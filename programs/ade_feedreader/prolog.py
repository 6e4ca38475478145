"""Inspects the start of a document before a feed parser sees it: whether it is a web page, and what it declares."""

import re
from contextlib import suppress
from xml.parsers import expat

from ade_feedreader.trouble import Trouble

# How far to look for the start of a web page. Long comments may precede its first element.
HEAD_CHARACTERS = 64 << 10
# RSS 0.91 had to name these DTDs. The parsers do not fetch them.
_HARMLESS = re.compile(r"-//(netscape communications|userland)//dtd rss 0\.9\d", re.IGNORECASE)
_ENTITY = re.compile(r"<!\s*ENTITY", re.IGNORECASE)
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)
_ELEMENT = re.compile(r"<[A-Za-z_]")
# What feedparser takes for the first element.
_WORD = re.compile(r"<\w", re.ASCII)
_HTML = re.compile(r"\s*(<\?xml[^>]{0,200}>\s*)?<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class _Enough(Exception):
    """Stops the parser at the first element, because no declaration can follow it."""


def looks_like_html(text: str) -> bool:
    return bool(_HTML.match(_without_comments(text[:HEAD_CHARACTERS])))


def refuse_declarations(text: str) -> None:
    """Raise Trouble if a document type or entities are declared, which can expand to gigabytes or include files."""
    parser = expat.ParserCreate("utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    has_element = False

    def element(_name: str, _attributes: object) -> None:
        nonlocal has_element
        has_element = True
        raise _Enough

    def doctype(_name: str, _system: str | None, public: str | None, has_own: bool) -> None:  # signature of expat
        if has_own or not _HARMLESS.match(public or ""):
            raise _forbidden("DOCTYPE")

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = element, doctype
    with suppress(_Enough, expat.ExpatError):
        parser.Parse(text.encode(), True)
    # Search comments too: feedparser finds entities in them and expands them if the syntax is broken.
    if _ENTITY.search(_before(_WORD, text)):
        raise _forbidden("ENTITY")
    # Text that is broken before its first element still goes to feedparser, whose parser is less strict than expat.
    if not has_element and (declaration := _DECLARATION.search(_before(_ELEMENT, _without_comments(text)))):
        raise _forbidden(declaration[1].upper())


def _before(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return text[: match.start()] if match else text


def _without_comments(text: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join([*parts, text[at:]])


def _forbidden(what: str) -> Trouble:
    message = f"This feed was not read: its {what} declaration could define entities or include files."
    return Trouble("forbidden", message)
