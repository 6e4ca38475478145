"""Lists of feeds as other readers keep them: OPML. Folders are read through, and none is written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

# Some ten times the longest list that anybody has shown us.
MOST_BYTES = 10 * 2**20
MOST_ENTRIES = 10_000
# Folders in folders: the depth of the XML, and so two more than theirs.
MOST_DEPTH = 50
MOST_ELEMENTS = 100_000
# What XML has no way to say, or what a terminal would obey.
_UNSPEAKABLE = re.compile("[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class BadOpml(Exception):
    """It is no list of feeds, or none that is read here."""


@dataclass(frozen=True)
class Entry:
    url: str
    title: str = ""
    site_url: str = ""
    # Where the file has it; of what is to be written, nowhere.
    line: int | None = None


def read(data: bytes) -> list[Entry]:
    """All feeds of a list, in their order, duplicates and nonsense among them. Raises BadOpml."""
    if len(data) > MOST_BYTES:
        raise BadOpml(f"expected a list of at most {MOST_BYTES:,} bytes, found a longer one")
    found = _Outlines()
    parser = DefusedXMLParser(target=found, forbid_dtd=True)
    found.reads = parser.parser
    try:
        parser.feed(data.lstrip())
        parser.close()
    except DefusedXmlException as error:
        message = "expected no document type and no entities, found some; remove the line that begins with <!DOCTYPE"
        raise BadOpml(message) from error
    except (ParseError, LookupError, ValueError) as error:
        raise BadOpml(_not_well_formed(data, error)) from error
    return found.entries


def write(entries: Iterable[Entry]) -> bytes:
    """OPML 2.0, in UTF-8. Without a date, so that the same feeds make the same file."""
    root = ElementTree.Element("opml", version="2.0")
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = "Feeds"
    body = ElementTree.SubElement(root, "body")
    for entry in entries:
        # There must be a text. What stands in for a title is none when it is read again.
        told = {"type": "rss", "text": entry.title or entry.url, "title": entry.title, "xmlUrl": entry.url}
        told |= {"htmlUrl": entry.site_url}
        said = {name: _UNSPEAKABLE.sub("\ufffd", value) for name, value in told.items() if value}
        ElementTree.SubElement(body, "outline", said)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


class _Outlines:
    """What the parser tells of elements. No tree is made: a hostile file costs no more than its bytes."""

    reads: Any

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.elements = self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if not self.elements and name != "opml":
            raise BadOpml(f"expected a list of feeds, which begins with <opml>, found <{name[:40]}>{_hint(name)}")
        self.elements += 1
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise BadOpml(f"expected at most {MOST_DEPTH} elements in one another, found more in line {self.line}")
        if self.elements > MOST_ELEMENTS:
            raise BadOpml(f"expected at most {MOST_ELEMENTS:,} elements, found more")
        if name == "outline" and (entry := _entry(attributes, self.line)):
            if len(self.entries) == MOST_ENTRIES:
                raise BadOpml(f"expected at most {MOST_ENTRIES:,} feeds, found more; split the file")
            self.entries.append(entry)

    def end(self, tag: str) -> None:
        self.depth -= 1

    def close(self) -> None:
        """The parser wants one."""

    @property
    def line(self) -> int:
        line: int = self.reads.CurrentLineNumber
        return line


def _entry(attributes: dict[str, str], line: int) -> Entry | None:
    """None for a folder, and for what readers keep beside feeds."""
    # Readers do not agree on capitals.
    said = {_local(name): " ".join(value.split()) for name, value in attributes.items()}
    is_feed = said.get("type", "").lower() in {"rss", "rss1", "atom"}
    if "xmlurl" not in said and not is_feed:
        return None
    url = said.get("xmlurl") or said.get("url", "")
    title = said.get("title") or said.get("text", "")
    return Entry(url, "" if title == url else title, said.get("htmlurl", ""), line)


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _hint(root: str) -> str:
    is_feed = root in {"rss", "rdf", "feed"}
    return ": a feed itself; `manage.py feed add` takes its URL" if is_feed else ""


def _not_well_formed(data: bytes, error: Exception) -> str:
    if isinstance(error, ParseError) and (where := _first_bad_byte(data)):
        return f"expected UTF-8, found a byte in line {where} that is none; save it as UTF-8, or say what it is"
    if isinstance(error, ParseError):
        advice = "; a & has to be written as &amp;" if re.search("invalid token|undefined entity", str(error)) else ""
        return f"expected XML, found: {error}{advice}"
    return f"expected an encoding that is known here, found: {error}; save it as UTF-8"


def _first_bad_byte(data: bytes) -> int | None:
    """Its line, in a file that says it is UTF-8, or says nothing and so is."""
    declared = re.match(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']*)""", data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (declared and declared[1].lower() not in (b"utf-8", b"utf8")):
        return None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return None
