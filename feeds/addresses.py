"""Brings URLs into a canonical spelling, so that an article is stored once even if different links lead to it.

Tracking parameters are dropped, and so is the fragment, unless a page uses it to find its content. The order of the
query is kept because some servers depend on it. `www.`, a trailing slash and the scheme are kept too, because without
them the URL may lead to a different page.
"""

import hashlib
import ipaddress
import re
import socket
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

import idna

from feeds.models import LONGEST_URL

# Longest raw URL that is accepted. It may be longer than a stored URL, because parts of a raw URL are dropped.
LONGEST_RAW_URL = 8000
PORTS = {"http": "80", "https": "443"}
# Prefixes of tracking parameters, in lower case.
_TRACKING_PREFIXES = ("utm_", "mtm_", "pk_", "matomo_", "piwik_", "hsa_", "at_medium", "at_campaign", "at_custom")
# fmt: off
_TRACKING = frozenset({
    "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "ysclid", "twclid", "ttclid",
    "li_fat_id", "igsh", "igshid", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hstc", "__hssc", "__hsfp",
    "hsctatracking", "oly_anon_id", "oly_enc_id", "vero_id", "vero_conv", "_ga", "_gl", "xtor", "wt_mc", "wt_zmc",
    "ns_mchannel", "ns_source", "ns_campaign", "ns_linkname", "ns_fee", "guccounter", "guce_referrer",
    "guce_referrer_sig", "__twitter_impression", "srsltid", "s_kwcid", "ef_id", "epik", "rb_clickid", "wickedid",
})
# fmt: on
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]*)(?::([0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_HOST = 253
_SPACES_AROUND = "".join(map(chr, range(0x21)))
_BREAKS = re.compile("[\t\n\r]")
# An encoded character, a percent sign that encodes nothing, or a character that must be encoded.
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})|[^!-~]|%|[\"<>\\^`{|}]")
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_TO_ENCODE = re.compile(r"[^!-~]|[%\"<>\\^`{|}]")
# `.` and `..`, plain or percent-encoded.
_DOTS = re.compile(r"(?:\.|%2[Ee]){1,2}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class BadUrl(ValueError):
    """The URL can't be used. The message says what is wrong with it."""


def canonical(url: str) -> str:
    """Return the canonical spelling of a web address. Raises BadUrl."""
    if len(url) > LONGEST_RAW_URL:
        raise BadUrl(f"The URL is too long: it has {len(url)} characters, and the limit is {LONGEST_RAW_URL}.")
    match = _PARTS.fullmatch(_BREAKS.sub("", url.strip(_SPACES_AROUND)))
    assert match
    scheme, authority, path, query, fragment = (part or "" for part in match.groups())
    scheme = scheme.lower()
    if scheme not in PORTS:
        raise BadUrl(f"The URL {excerpt(url)} must begin with https:// or http://.")
    rest = _absolute(path)
    if query := "&".join(part for part in query.split("&") if part and not _is_tracking(part)):
        rest += f"?{query}"
    # Keep a fragment that the page's own script reads: the URLs of such an application differ only in the fragment.
    if fragment.startswith(("!", "/")):
        rest += f"#{fragment}"
    host, port = _host_and_port(authority, url)
    origin = f"{scheme}://{host}" if port in ("", PORTS[scheme]) else f"{scheme}://{host}:{port}"
    # Escaping is slow. Without this check, a small feed full of URLs that end up too long would take many seconds. The
    # check uses a lower bound of the length, because an encoded character may become a single letter.
    least = len(origin) + len(_TO_ENCODE.sub("xxx", _ENCODED.sub("x", rest)))
    if least > LONGEST_URL:
        raise _too_long(url, f"{least} or more")
    result = origin + _ESCAPE.sub(_escape, rest)
    if len(result) > LONGEST_URL:
        raise _too_long(result, str(len(result)))
    return result


def canonical_or_empty(url: str) -> str:
    """Return the canonical spelling, or "" if it is not a web address."""
    try:
        return canonical(url)
    except BadUrl:
        return ""


def digest(canonical_url: str) -> str:
    """Return the hash of a URL, which is kept when the article is purged."""
    return hashlib.sha256(canonical_url.encode()).hexdigest()


def excerpt(url: str) -> str:
    """Return the beginning of the URL, quoted, for messages to people."""
    return repr(url if len(url) <= 100 else f"{url[:99]}…")


def _too_long(url: str, length: str) -> BadUrl:
    return BadUrl(f"The URL {excerpt(url)} is too long: it has {length} characters, and the limit is {LONGEST_URL}.")


def _host_and_port(authority: str, url: str) -> tuple[str, str]:
    if "@" in authority:
        raise BadUrl(f"The URL must not have a user name or a password in front of {excerpt(url.rpartition('@')[2])}.")
    match = _HOST_AND_PORT.fullmatch(_decoded(authority).lower())
    if not match or (match[2] and not 0 < int(match[2]) < 1 << 16):
        raise BadUrl(f"The URL {excerpt(url)} must have a host, and its port, if any, must be from 1 to 65535.")
    host, port = match[1], (match[2] or "").lstrip("0")
    if host.startswith("["):
        try:
            # str() writes an embedded IPv4 address differently from Python 3.13 on.
            packed = ipaddress.IPv6Address(host[1:-1]).packed
            return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]", port
        except ValueError as error:
            raise BadUrl(f"The brackets in the URL {excerpt(url)} must contain an IPv6 address.") from error
    if not host.isascii():
        try:
            host = idna.encode(host[: _LONGEST_HOST + 1], uts46=True).decode().lower()
        except (idna.IDNAError, UnicodeError) as error:
            raise BadUrl(f"The URL {excerpt(url)} has no valid host name.") from error
    host = host.removesuffix(".")
    if len(host) > _LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise BadUrl(f"The URL {excerpt(url)} has no valid host name.")
    return host, port


def _decoded(text: str) -> str:
    return unquote_to_bytes(text.encode(errors="replace")).decode(errors="replace")


def _absolute(path: str) -> str:
    """Make the path absolute and resolve `.` and `..`."""
    result: list[str] = []
    segments = path.replace("\\", "/").split("/")[1:] or [""]
    for segment in segments:
        dots = segment.lower().replace("%2e", ".") if _DOTS.fullmatch(segment) else ""
        if dots == "..":
            result[-1:] = []
        elif not dots:
            result.append(segment)
    if _DOTS.fullmatch(segments[-1]):
        result.append("")
    return "/" + "/".join(result)


def _is_tracking(part: str) -> bool:
    name = _decoded(part.partition("=")[0]).lower()
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)


def _escape(match: re.Match[str]) -> str:
    if match[1]:
        byte = int(match[1], 16)
        return chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
    return _encoded(match[0])


@lru_cache(maxsize=1024)
def _encoded(character: str) -> str:
    return quote(character, safe="", errors="replace")
