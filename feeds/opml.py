"""Reads and writes OPML, the format in which other feed readers exchange lists of feeds. Folders are flattened when
reading, and never written.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

# About ten times the longest list that we have seen.
MOST_BYTES = 10 * 2**20
MOST_ENTRIES = 10_000
# Depth of XML elements: two more than the depth of folders.
MOST_DEPTH = 50
MOST_ELEMENTS = 100_000
# Characters that XML can't represent, or that a terminal would interpret.
_UNREPRESENTABLE = re.compile("[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FEED_ROOTS = {"rss", "rdf", "feed"}


class BadOpml(Exception):
    """The data is not a list of feeds, or the list can't be read here."""


@dataclass(frozen=True)
class Entry:
    url: str
    title: str = ""
    site_url: str = ""
    # The line in the file that was read; None for an entry to be written.
    line: int | None = None


def read(data: bytes) -> list[Entry]:
    """Return all feeds of a list in order, including duplicates and invalid URLs. Raises BadOpml."""
    if len(data) > MOST_BYTES:
        raise BadOpml(f"The list is larger than the limit of {MOST_BYTES:,} bytes.")
    outlines = _Outlines()
    parser = DefusedXMLParser(target=outlines, forbid_dtd=True)
    outlines.reader = parser.parser
    try:
        parser.feed(data.lstrip())
        parser.close()
    except DefusedXmlException as error:
        message = "The list must not declare a document type or entities. Remove the line that begins with <!DOCTYPE."
        raise BadOpml(message) from error
    except (ParseError, LookupError, ValueError) as error:
        if not isinstance(error, ParseError):
            message = f"The encoding of the file is not supported: {error}. Save it as UTF-8."
        elif line := _line_of_bad_byte(data):
            advice = "Save the file as UTF-8, or declare its encoding."
            message = f"Line {line} has a byte that is not valid UTF-8. {advice}"
        else:
            advice = " Write & as &amp;." if re.search("invalid token|undefined entity", str(error)) else ""
            message = f"This is not valid XML: {error}.{advice}"
        raise BadOpml(message) from error
    return outlines.entries


def write(entries: Iterable[Entry]) -> bytes:
    """Return OPML 2.0 in UTF-8. It has no date, so that the same feeds produce the same file."""
    root = ElementTree.Element("opml", version="2.0")
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = "Feeds"
    body = ElementTree.SubElement(root, "body")
    for entry in entries:
        # The `text` attribute is required. If it has the URL in place of a missing title, it is ignored when the list
        # is read.
        values = {"type": "rss", "text": entry.title or entry.url, "title": entry.title}
        values |= {"xmlUrl": entry.url, "htmlUrl": entry.site_url}
        attributes = {name: _UNREPRESENTABLE.sub("\ufffd", value) for name, value in values.items() if value}
        ElementTree.SubElement(body, "outline", attributes)
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


class _Outlines:
    """Target of the XML parser. It builds no tree, so a hostile file costs no more memory than its bytes."""

    reader: Any

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.elements = self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if not self.elements and name != "opml":
            hint = " It is a feed itself: add its URL with `manage.py feed add`." if name in _FEED_ROOTS else ""
            raise BadOpml(f"This is not a list of feeds: it begins with <{name[:40]}>, not <opml>.{hint}")
        self.elements += 1
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise BadOpml(f"The elements in line {self.line} are nested more than {MOST_DEPTH} deep.")
        if self.elements > MOST_ELEMENTS:
            raise BadOpml(f"The list has more than {MOST_ELEMENTS:,} elements.")
        if name != "outline":
            return
        # Readers disagree on the case of attribute names.
        values = {_local(name): " ".join(value.split()) for name, value in attributes.items()}
        is_feed = "xmlurl" in values or values.get("type", "").lower() in {"rss", "rss1", "atom"}
        # All other outlines are folders, or things that feed readers store next to feeds.
        if is_feed:
            if len(self.entries) == MOST_ENTRIES:
                raise BadOpml(f"The list has more than {MOST_ENTRIES:,} feeds. Split the file.")
            url = values.get("xmlurl") or values.get("url", "")
            title = values.get("title") or values.get("text", "")
            self.entries.append(Entry(url, "" if title == url else title, values.get("htmlurl", ""), self.line))

    def end(self, tag: str) -> None:
        self.depth -= 1

    def close(self) -> None:
        """Required by the parser."""

    @property
    def line(self) -> int:
        line: int = self.reader.CurrentLineNumber
        return line


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _line_of_bad_byte(data: bytes) -> int | None:
    """Return the line of the first invalid byte in a file that is UTF-8, by declaration or by default."""
    declared = re.match(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']*)""", data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (declared and declared[1].lower() not in (b"utf-8", b"utf8")):
        return None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return None
