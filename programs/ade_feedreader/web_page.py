"""Explains a web page where a feed was expected, because people add the address that they read at."""

import html
import re
from urllib.parse import urljoin

from ade_feedreader.text import clean
from ade_feedreader.trouble import Trouble

# Characters searched for links: the head of a page and a little more.
CHARACTERS = 256 << 10
MOST_FEEDS = 5
_LONGEST_LINK = 300
_LINK = re.compile(r"<link\b([^<>]{0,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(rel|type|href)\s{0,10}=\s{0,10}("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")


def no_feed(text: str, url: str) -> Trouble:
    feeds: dict[str, None] = {}
    for link in _LINK.finditer(text[:CHARACTERS]):
        attributes = {name.lower(): html.unescape(value.strip("\"'")) for name, value in _ATTRIBUTE.findall(link[1])}
        if "alternate" in attributes.get("rel", "").lower().split() and attributes.get("type", "").lower() in _TYPES:
            try:
                joined = clean(urljoin(url, attributes.get("href", "").strip()))
            except ValueError:
                continue
            if joined.startswith(("http://", "https://")) and len(joined) <= _LONGEST_LINK:
                feeds[joined] = None
    advice = (
        f"Add {' or '.join([*feeds][:MOST_FEEDS])} instead." if feeds else "Add the address of its feed, if it has one."
    )
    return Trouble("not_a_feed", f"This is a web page, not a feed. {advice}")
