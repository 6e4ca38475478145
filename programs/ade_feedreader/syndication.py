"""Reads RSS, RDF and Atom with feedparser, including what can be read of broken feeds."""

import calendar
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import feedparser
import feedparser.urls

from ade_feedreader import mending
from ade_feedreader.items import Feed, Item, Text
from ade_feedreader.prolog import refuse_declarations
from ade_feedreader.trouble import Trouble

# Accept every URI scheme. Otherwise feedparser drops a link that ADE refuses, and it would look like a missing one.
feedparser.urls.ACCEPTABLE_URI_SCHEMES = ()
_ROOT = re.compile(r"<([A-Za-z_][\w:.-]{0,60})")
_ON_THE_WEB = ("http://", "https://")
_SECONDS = {"hourly": 3600, "daily": 86400, "weekly": 604800, "monthly": 2592000, "yearly": 31536000}


def read(text: str, url: str) -> Feed:
    """Parse a feed. Raises Trouble if the text is not a feed."""
    refuse_declarations(text)
    text, item_count = mending.without_later_items(text)
    broken = mending.first_error(text)
    headers = {"content-type": "application/xml; charset=utf-8", "content-location": url}
    options = {"response_headers": headers, "resolve_relative_uris": False, "sanitize_html": False}
    parts = mending.split(text) if broken else [text]
    # Pass a stream, because feedparser takes a string or bytes that are not a feed for a file name.
    first, *others = (feedparser.parse(io.BytesIO(part.encode()), **options) for part in parts)
    entries = [entry for each in (first, *others) for entry in each.entries]
    if not entries and not first.version:
        root = _ROOT.search(text[: 64 << 10])
        kind = f": it is XML that begins with <{root[1]}>" if root and text.lstrip().startswith("<") else ""
        place = f" Its syntax is broken in {broken}." if broken else ""
        raise Trouble("not_a_feed", f"This is not a feed{kind}. ADE reads RSS, RDF, Atom and JSON Feed.{place}")
    if not entries and broken:
        raise Trouble("malformed", f"The XML of this feed is broken before its first item ({broken}).")
    minutes, frequency = _text_of(first.feed, "ttl").strip(), _text_of(first.feed, "sy_updatefrequency").strip()
    if minutes.isascii() and minutes.isdigit() and len(minutes) < 8:
        ttl_seconds = 60 * int(minutes)
    else:
        period = _SECONDS.get(_text_of(first.feed, "sy_updateperiod").strip().lower(), 0)
        times = int(frequency) if frequency.isascii() and frequency.isdigit() and len(frequency) < 8 else 1
        ttl_seconds = period // max(times, 1)
    return Feed(
        format=first.version,
        title=_text_of(first.feed, "title"),
        site_url=_text_of(first.feed, "link"),
        ttl_seconds=ttl_seconds,
        items=_items(entries),
        item_count=item_count,
        broken=broken,
    )


def _items(entries: list[Any]) -> Iterator[Item]:
    for entry in entries:
        summary = _text(entry, "summary")
        if not summary.text:
            contents = entry.get("content") or []
            summary = next((Text(_text_of(each, "value"), is_html=_is_html(each)) for each in contents), Text())
        # The link of an item, otherwise its ID if that is a URL, otherwise its first attachment, such as audio.
        link, name = _text_of(entry, "link"), _text_of(entry, "id")
        if not link and name.startswith(_ON_THE_WEB):
            link = name
        elif not link:
            enclosures = entry.get("enclosures") or entry.get("links") or []
            link = next((href for each in enclosures if (href := _text_of(each, "href"))), "")
        moment = entry.get("published_parsed") or entry.get("updated_parsed")
        published = None
        with suppress(ValueError, OverflowError, TypeError):
            published = calendar.timegm(moment) if moment else None
        yield Item(
            url=link,
            title=_text(entry, "title"),
            summary=summary,
            author=_text_of(entry, "author"),
            published=published,
        )


def _text(entry: Any, name: str) -> Text:
    return Text(_text_of(entry, name), is_html=_is_html(entry.get(f"{name}_detail")))


def _is_html(detail: Any) -> bool:
    return not isinstance(detail, dict) or detail.get("type") != "text/plain"


def _text_of(value: Any, name: str) -> str:
    """Return a text, or "" if misplaced elements have turned the value into something else."""
    value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
