"""Checks which URLs may be requested at all. The address of a host name is checked when the connection is made."""

import re

import httpx2

from feeds.fetching.addresses import address_of
from feeds.fetching.outcome import FetchFailed

# No feed that we know has a longer URL.
LONGEST_URL = 2000
_UNREADABLE = "The URL is not valid; use one such as https://example.org/feed.xml."
_DEFAULT_PORTS = {"http": 80, "https": 443}
# URL parsers disagree about the host if one of these characters is in the URL.
_NOT_IN_URLS = re.compile(r"[\s\\\x00-\x1f\x7f]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# Resolvers accept 2130706433, 0x7f.1 and 017700000001 as IPv4 addresses.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def target_of(url: str) -> httpx2.URL:
    """Parse and normalise a URL. Raises FetchFailed."""
    if len(url) > LONGEST_URL:
        raise _bad(f"The URL is too long: it has {len(url)} characters, and the limit is {LONGEST_URL}.")
    if _NOT_IN_URLS.search(url):
        raise _bad("The URL must not contain spaces, backslashes or control characters.")
    try:
        parts = httpx2.URL(url)
        # Setting `raw_path` again adds the slash of an empty path.
        target = parts.copy_with(raw_path=parts.raw_path, fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise FetchFailed("bad_url", _UNREADABLE, permanent=True) from error
    if target.scheme not in _DEFAULT_PORTS:
        raise _bad("The URL must begin with https:// or http://.")
    if target.userinfo:
        raise _bad("The URL must not contain a user name or a password.")
    if target.port is not None and not 0 < target.port < 65536:
        raise _bad(f"The port in the URL must be from 1 to 65535, not {str(target.port)[:20]}.")
    host = target.raw_host.decode()
    labels = host.split(".")
    is_name = len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])
    if "%" in host or (address_of(host) is None and not is_name):
        raise _bad("The URL must contain a host name, or an IP address such as 192.0.2.1 or [2001:db8::1].")
    return target


def next_target(target: httpx2.URL, location: bytes) -> httpx2.URL:
    """Return the target of a redirect. Raises FetchFailed."""
    try:
        following = target_of(str(target.join(location.decode())))
    except (httpx2.InvalidURL, ValueError) as error:
        raise FetchFailed("bad_url", f"Redirected by {origin_of(target)}: {_UNREADABLE}") from error
    except FetchFailed as error:
        raise FetchFailed(error.code, f"Redirected by {origin_of(target)}: {error}") from error
    if target.scheme == "https" and following.scheme == "http":
        where = f"from {origin_of(target)} to {origin_of(following)}"
        raise FetchFailed("refused_redirect", f"The redirect {where} was not followed, because it leaves https.")
    return following


def port_of(target: httpx2.URL) -> int:
    return target.port or _DEFAULT_PORTS[target.scheme]


def origin_of(target: httpx2.URL) -> str:
    """Return scheme and host for messages: the path and the query may contain secrets."""
    return f"{target.scheme}://{target.netloc.decode()}"


def _bad(message: str) -> FetchFailed:
    return FetchFailed("bad_url", message, permanent=True)
