"""Turns HTTP responses into values that can be used and stored."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpcore2
import httpx2

from feeds.fetching import bodies
from feeds.fetching.outcome import FeedResponse, FetchFailed
from feeds.fetching.targets import origin_of

# The lengths of the columns that store these values.
LONGEST_ETAG = 500
LONGEST_LAST_MODIFIED = 200
LONGEST_CONTENT_TYPE = 200
LONGEST_RETRY_AFTER = 100
# Longer pauses are cut to a day, so that a feed is checked at least daily.
LONGEST_PAUSE_SECONDS = 24 * 3600.0

_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def read_feed(
    response: httpcore2.Response, target: httpx2.URL, conditions: dict[str, str], most_bytes: int
) -> FeedResponse:
    """Read the feed from a response that is not a redirect. `conditions` are the conditional headers of the request."""
    body, before = b"", conditions
    is_unchanged = response.status == HTTPStatus.NOT_MODIFIED and bool(conditions)
    if not is_unchanged:
        if response.status != HTTPStatus.OK:
            raise FetchFailed(
                "http_status",
                f"The server at {origin_of(target)} answered {status_text(response.status)} instead of 200 OK.",
                permanent=response.status == HTTPStatus.GONE,
                retry_after=retry_after(response, datetime.now(UTC)),
            )
        length = _header(response, "content-length", 20)
        if length.isdigit() and int(length) > most_bytes:
            raise bodies.too_large(most_bytes)
        codings = b",".join(_headers(response, "content-encoding")).decode("latin-1").lower().split(",")
        body = bodies.read(response.iter_stream(), [each.strip() for each in codings if each.strip()], most_bytes)
        if not body:
            raise FetchFailed("bad_answer", f"The server at {origin_of(target)} sent an empty answer.")
        # Only a 304 response may leave out the validators.
        before = {}
    return FeedResponse(
        url=str(target),
        body=body,
        content_type=_header(response, "content-type", LONGEST_CONTENT_TYPE),
        etag=_header(response, "etag", LONGEST_ETAG) or before.get("If-None-Match", ""),
        last_modified=_header(response, "last-modified", LONGEST_LAST_MODIFIED) or before.get("If-Modified-Since", ""),
        unchanged=is_unchanged,
    )


def conditional_headers(etag: str, last_modified: str) -> dict[str, str]:
    headers = {"If-None-Match": etag.strip(), "If-Modified-Since": last_modified.strip()}
    return {name: value for name, value in headers.items() if value and _is_printable(value)}


def location(response: httpcore2.Response, target: httpx2.URL) -> bytes:
    locations = _headers(response, "location")
    if not locations:
        message = f"The server at {origin_of(target)} answered {response.status}, a redirect, but did not say where to."
        raise FetchFailed("http_status", message)
    return locations[0]


def retry_after(response: httpcore2.Response, now: datetime) -> float | None:
    """Return for how many seconds a busy server asks not to be called. The header has this number or a date."""
    text = _header(response, "retry-after", LONGEST_RETRY_AFTER) if response.status in _BUSY else ""
    if re.fullmatch(r"[0-9]{1,10}", text):
        return min(float(text), LONGEST_PAUSE_SECONDS)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date without a zone is in UTC.
    seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)


def status_text(status: int) -> str:
    """Return, for example, "404 Not Found". The reason phrase of a server is untrusted, so the standard one is used."""
    return f"{status} {_PHRASES.get(status, '')}".strip()


def _header(response: httpcore2.Response, name: str, longest: int) -> str:
    """Return the first header of that name, or "" if it is too long to store or not printable ASCII."""
    value = next(iter(_headers(response, name)), b"").decode("latin-1").strip()
    return value if len(value) <= longest and _is_printable(value) else ""


def _headers(response: httpcore2.Response, name: str) -> list[bytes]:
    return [value for each, value in response.headers if each.lower() == name.encode()]


def _is_printable(value: str) -> bool:
    return value.isascii() and value.isprintable()
