"""Parses XML from strangers: without entities and DTDs, and within limits of size, depth and number of elements."""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

# An invoice has some 20 KB; with attachments as Base64 some megabytes.
MOST_BYTES = 32 << 20
MOST_DEPTH = 64
MOST_ELEMENTS = 500_000
# Attachments of an invoice as Base64. Their text is not kept.
_ATTACHMENTS = frozenset({"AttachmentBinaryObject", "EmbeddedDocumentBinaryObject", "Attachment"})
_ROOT = re.compile(r"<(?:[\w.-]{1,40}:)?([A-Za-z_][\w.-]{0,80})[\s/>]")
_SKIPPED = re.compile(r"(?:\ufeff|\s|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)


class BadXml(Exception):
    """The XML cannot be read or is refused; the message says why, as the second half of a sentence."""


def parse(data: bytes) -> Element:
    """Return the root. Names of elements and attributes lose their namespace; the root keeps it as `xmlns`."""
    if len(data) > MOST_BYTES:
        raise BadXml(f"it has {len(data):,} bytes (limit: {MOST_BYTES:,})")
    builder = _Builder()
    parser = DefusedXMLParser(target=builder, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        parser.feed(data)
        root: Element = parser.close()
    except DefusedXmlException as error:
        raise BadXml("it has a document type or entities, which are refused") from error
    except (ParseError, LookupError, ValueError) as error:
        raise BadXml(f"it is not well-formed ({error})") from error
    return root


def root_name(text: str) -> str:
    """Return the local name of the root element from the beginning of a text, or "" if it does not show."""
    skipped = _SKIPPED.match(text)
    root = _ROOT.match(text, skipped.end() if skipped else 0)
    return root[1] if root else ""


def text_of(element: Element | None, *paths: str) -> str:
    """Return the first text that one of the paths has, without spaces at its ends, or ""."""
    if element is None:
        return ""
    for path in paths:
        for each in element.iterfind(path):
            if text := clean(each.text):
                return text
    return ""


def clean(text: str | None) -> str:
    """Return the text with single spaces in its lines, and without empty lines at its ends."""
    return "\n".join(" ".join(line.split()) for line in (text or "").strip().splitlines())


def all_texts(element: Element) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of all elements that have a text, in their order."""
    for each in element.iter():
        if text := clean(each.text):
            yield each.tag, text


class _Builder(TreeBuilder):
    def __init__(self) -> None:
        super().__init__()
        self._depth = self._elements = 0
        self._is_attachment = False

    def start(self, tag: Any, attrs: dict[Any, Any]) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > MOST_DEPTH:
            raise BadXml(f"its elements are nested more than {MOST_DEPTH} deep")
        if self._elements > MOST_ELEMENTS:
            raise BadXml(f"it has more than {MOST_ELEMENTS:,} elements")
        namespace, _, name = tag.rpartition("}")
        plain = {key.rpartition("}")[2]: value for key, value in attrs.items()}
        if self._depth == 1:
            plain["xmlns"] = namespace.lstrip("{")
        self._is_attachment = name in _ATTACHMENTS
        return super().start(name, plain)

    def end(self, tag: Any) -> Element:
        self._depth -= 1
        self._is_attachment = False
        return super().end(tag.rpartition("}")[2])

    def data(self, data: Any) -> None:
        if not self._is_attachment:
            super().data(data)
