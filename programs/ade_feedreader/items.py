"""Writes the items of a feed, and the metadata that is reported about it, cleaned and limited in length."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ade_feedreader import LONGEST_AUTHOR, LONGEST_LINK, LONGEST_SUMMARY, LONGEST_TITLE, MOST_BYTES, MOST_ITEMS
from ade_feedreader.text import clean, plain, shorten

# Length of a title that is taken from the summary.
_OF_SUMMARY = 120
_LONGEST_DETAIL = 200


@dataclass(frozen=True)
class Text:
    text: str = ""
    is_html: bool = True


@dataclass(frozen=True)
class Item:
    url: str
    title: Text
    summary: Text
    author: str
    published: int | None


@dataclass(frozen=True)
class Feed:
    format: str
    title: str
    site_url: str
    # For how long the feed asks not to be fetched again.
    ttl_seconds: int
    items: Iterable[Item]
    # Number of items in the feed, if `items` leaves some out.
    item_count: int = 0
    # Where the syntax is broken, or "". The items hold what could be read nevertheless.
    broken: str = ""


@dataclass(frozen=True)
class Counts:
    found: int
    written: int


def write(items: Iterable[Item], path: Path) -> Counts:
    found = written = size = 0
    with path.open("wb") as file:
        for item in items:
            found += 1
            if written == MOST_ITEMS or size >= MOST_BYTES:
                continue
            summary = plain(item.summary.text, LONGEST_SUMMARY, is_html=item.summary.is_html)
            title = plain(item.title.text, LONGEST_TITLE, is_html=item.title.is_html)
            row = {
                "url": clean(item.url[: LONGEST_LINK + 1]),
                "title": title or shorten(summary, _OF_SUMMARY),
                "summary": summary,
                "author": plain(item.author, LONGEST_AUTHOR, is_html=False),
                "published": item.published,
            }
            line = json.dumps(row).encode() + b"\n"
            size += len(line)
            if size <= MOST_BYTES:
                file.write(line)
                written += 1
    return Counts(found, written)


def metadata(feed: Feed, counts: Counts) -> dict[str, Any]:
    return {
        "format": clean(feed.format[:40]),
        "title": plain(feed.title, LONGEST_TITLE, is_html=True),
        "site_url": clean(feed.site_url[: LONGEST_LINK + 1]),
        "ttl_seconds": feed.ttl_seconds,
        "broken": shorten(clean(feed.broken), _LONGEST_DETAIL),
        "found": max(feed.item_count, counts.found),
        "items": counts.written,
    }
