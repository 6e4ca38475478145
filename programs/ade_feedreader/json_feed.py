"""Reads JSON Feed 1.0 and 1.1. A value of the wrong type counts as missing."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

from ade_feedreader.items import Feed, Item, Text
from ade_feedreader.trouble import Trouble


def read(text: str, url: str) -> Feed:
    """Parse a feed. Raises Trouble if the text is not a JSON Feed."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Trouble("malformed", f"The JSON of the feed is broken: {error}.") from error
    version = _said(found, "version")
    if "jsonfeed.org/version/" not in version or not isinstance(found.get("items"), list):
        raise Trouble("not_a_feed", "This JSON is not a feed. ADE reads RSS, RDF, Atom and JSON Feed.")
    return Feed(
        format=f"json{version.rpartition('/')[2]}",
        title=_said(found, "title"),
        site_url=_joined(url, _said(found, "home_page_url")),
        ttl_seconds=0,
        items=_items(found["items"], url),
    )


def _items(items: list[Any], url: str) -> Iterator[Item]:
    for item in items:
        markup = _said(item, "content_html")
        summary = _said(item, "summary") or _said(item, "content_text")
        yield Item(
            url=_joined(url, _said(item, "url") or _said(item, "external_url") or _name(item)),
            title=Text(_said(item, "title"), is_html=False),
            summary=Text(summary, is_html=False) if summary else Text(markup),
            author=_author(item),
            published=_seconds(_said(item, "date_published") or _said(item, "date_modified")),
        )


def _name(item: Any) -> str:
    name = _said(item, "id")
    return name if name.startswith(("http://", "https://")) else ""


def _author(item: Any) -> str:
    several = item.get("authors") if isinstance(item, dict) else None
    authors = several if isinstance(several, list) else [item.get("author")] if isinstance(item, dict) else []
    return ", ".join(filter(None, (_said(author, "name") for author in authors[:10])))


def _said(about: Any, name: str) -> str:
    value = about.get(name) if isinstance(about, dict) else None
    return value if isinstance(value, str) else ""


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url) if url else ""
    except ValueError:
        return url


def _seconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
