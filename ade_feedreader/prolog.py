"""What is looked at before a parser of feeds sees anything: what kind of document it is, and what it declares."""

import re
from contextlib import suppress
from xml.parsers import expat

from ade_feedreader.trouble import Trouble

# Of what may be a web page. Long comments may come before its first element.
HEAD_CHARACTERS = 64 << 10
# Of RSS 0.91, which had to name its own. Nobody fetches it.
_HARMLESS = re.compile(r"-//(netscape communications|userland)//dtd rss 0\.9\d", re.IGNORECASE)
_ENTITY = re.compile(r"<!\s*ENTITY", re.IGNORECASE)
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)
_ELEMENT = re.compile(r"<[A-Za-z_]")
# What feedparser takes for the first element.
_WORD = re.compile(r"<\w", re.ASCII)
_HTML = re.compile(r"\s*(<\?xml[^>]{0,200}>\s*)?<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class _Enough(Exception):
    """The first element has come: no declaration can."""


def looks_like_html(text: str) -> bool:
    return bool(_HTML.match(_without_comments(text[:HEAD_CHARACTERS])))


def refuse_declarations(text: str) -> None:
    """Raises Trouble where a type is declared, by which a few lines become gigabytes, or other files."""
    try:
        root = _first_element(text)
    except expat.ExpatError:
        root = None
    # Comments too: feedparser finds entities in them, and expands them where the syntax is broken.
    if _ENTITY.search(_before(_WORD, text)):
        raise _declares("ENTITY")
    # What is broken before its first element is read all the same, by parsers that are less strict.
    if root is None and (found := _DECLARATION.search(_before(_ELEMENT, _without_comments(text)))):
        raise _declares(found[1].upper())


def _before(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return text[: match.start()] if match else text


def _first_element(text: str) -> str | None:
    parser = expat.ParserCreate("utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    found: list[str] = []

    def element(name: str, _attributes: object) -> None:
        found.append(name)
        raise _Enough

    def doctype(_name: str, _system: str | None, public: str | None, has_own: bool) -> None:  # expat's
        if has_own or not _HARMLESS.match(public or ""):
            raise _declares("DOCTYPE")

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = element, doctype
    with suppress(_Enough):
        parser.Parse(text.encode(), True)
    return found[0] if found else None


def _without_comments(text: str) -> str:
    made: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        made.append(text[at:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(made)
        at = end + 3
    return "".join([*made, text[at:]])


def _declares(what: str) -> Trouble:
    return Trouble(
        "forbidden", f"expected a feed without a {what}, found one, which could name entities and files: it is not read"
    )
