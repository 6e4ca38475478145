"""Reads JSON Feed 1.0 and 1.1. A value of the wrong type counts as missing."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

from ade_feedreader.items import Feed, Item, Text
from ade_feedreader.trouble import Trouble


def read(text: str, url: str) -> Feed:
    """Parse a feed. Raises Trouble if the text is not a JSON Feed."""
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Trouble("malformed", f"The JSON of the feed is broken: {error}.") from error
    version = _text_of(feed, "version")
    if "jsonfeed.org/version/" not in version or not isinstance(feed.get("items"), list):
        raise Trouble("not_a_feed", "This JSON is not a feed. ADE reads RSS, RDF, Atom and JSON Feed.")
    return Feed(
        format=f"json{version.rpartition('/')[2]}",
        title=_text_of(feed, "title"),
        site_url=_join(url, _text_of(feed, "home_page_url")),
        ttl_seconds=0,
        items=_items(feed["items"], url),
    )


def _items(items: list[Any], url: str) -> Iterator[Item]:
    for item in items:
        markup = _text_of(item, "content_html")
        summary = _text_of(item, "summary") or _text_of(item, "content_text")
        name = _text_of(item, "id")
        address = name if name.startswith(("http://", "https://")) else ""
        several = item.get("authors") if isinstance(item, dict) else None
        authors = several if isinstance(several, list) else [item.get("author")] if isinstance(item, dict) else []
        published = None
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(
                (_text_of(item, "date_published") or _text_of(item, "date_modified")).strip()
            )
            published = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        yield Item(
            url=_join(url, _text_of(item, "url") or _text_of(item, "external_url") or address),
            title=Text(_text_of(item, "title"), is_html=False),
            summary=Text(summary, is_html=False) if summary else Text(markup),
            author=", ".join(filter(None, (_text_of(author, "name") for author in authors[:10]))),
            published=published,
        )


def _text_of(value: Any, name: str) -> str:
    value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _join(base: str, url: str) -> str:
    try:
        return urljoin(base, url) if url else ""
    except ValueError:
        return url
