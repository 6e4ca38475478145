"""Turns HTTP responses into what can be used and stored."""

from datetime import UTC, datetime
from http import HTTPStatus

import httpcore2
import httpx2

from feeds.fetching import bodies, pauses
from feeds.fetching.outcome import Fetched, FetchFailed
from feeds.fetching.targets import named

# The lengths of the columns that store these values.
LONGEST_ETAG = 500
LONGEST_LAST_MODIFIED = 200
LONGEST_CONTENT_TYPE = 200
LONGEST_RETRY_AFTER = 100

_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def taken(answer: httpcore2.Response, target: httpx2.URL, known: dict[str, str], most_bytes: int) -> Fetched:
    unchanged = answer.status == HTTPStatus.NOT_MODIFIED and bool(known)
    body = b"" if unchanged else _feed(answer, target, most_bytes)
    # A 304 response need not repeat the validators.
    before = known if unchanged else {}
    return Fetched(
        url=str(target),
        body=body,
        content_type=_text(answer, "content-type", LONGEST_CONTENT_TYPE),
        etag=_text(answer, "etag", LONGEST_ETAG) or before.get("If-None-Match", ""),
        last_modified=_text(answer, "last-modified", LONGEST_LAST_MODIFIED) or before.get("If-Modified-Since", ""),
        unchanged=unchanged,
    )


def known(etag: str, last_modified: str) -> dict[str, str]:
    """Return the conditional headers for the validators of an earlier response."""
    said = {"If-None-Match": etag.strip(), "If-Modified-Since": last_modified.strip()}
    return {name: value for name, value in said.items() if value and _can_be_said(value)}


def location(answer: httpcore2.Response, target: httpx2.URL) -> bytes:
    """Return the redirect target as the server sent it."""
    found = _all(answer, "location")
    if not found:
        message = f"The server at {named(target)} answered {answer.status}, a redirect, but did not say where to."
        raise FetchFailed("http_status", message)
    return found[0]


def retry_after(answer: httpcore2.Response, now: datetime) -> float | None:
    """Return for how many seconds a busy server asks not to be called."""
    asked_for = _text(answer, "retry-after", LONGEST_RETRY_AFTER) if answer.status in _BUSY else ""
    return pauses.seconds_of(asked_for, now)


def _feed(answer: httpcore2.Response, target: httpx2.URL, most_bytes: int) -> bytes:
    if answer.status != HTTPStatus.OK:
        raise _refused(answer, target)
    length = _text(answer, "content-length", 20)
    if length.isdigit() and int(length) > most_bytes:
        raise bodies.too_large(most_bytes)
    words = b",".join(_all(answer, "content-encoding")).decode("latin-1").lower().split(",")
    body = bodies.read(answer.iter_stream(), [word.strip() for word in words if word.strip()], most_bytes)
    if not body:
        raise FetchFailed("bad_answer", f"The server at {named(target)} sent an empty answer.")
    return body


def _refused(answer: httpcore2.Response, target: httpx2.URL) -> FetchFailed:
    # The reason phrase of the server is untrusted, so the standard one is used.
    found = f"{answer.status} {_PHRASES.get(answer.status, '')}".strip()
    return FetchFailed(
        "http_status",
        f"The server at {named(target)} answered {found} instead of 200 OK.",
        permanent=answer.status == HTTPStatus.GONE,
        retry_after=retry_after(answer, datetime.now(UTC)),
    )


def _text(answer: httpcore2.Response, name: str, longest: int) -> str:
    """Return the first header of that name, or "" if it is too long to store or not printable ASCII."""
    value = next(iter(_all(answer, name)), b"").decode("latin-1").strip()
    return value if len(value) <= longest and _can_be_said(value) else ""


def _all(answer: httpcore2.Response, name: str) -> list[bytes]:
    return [value for each, value in answer.headers if each.lower() == name.encode()]


def _can_be_said(value: str) -> bool:
    return value.isascii() and value.isprintable()
