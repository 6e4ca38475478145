"""Prepares numbers, and texts from untrusted feeds, for display."""

import re
import unicodedata
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from feeds.models import LONGEST_URL

# Characters that change the direction of the surrounding text, and code points that are not characters, which XML may
# not contain.
_TAKEN_OUT = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]")
# How many times the wanted length is examined, because some of the examined characters may be removed.
_LOOKED_AT = 4
_BREAKS = {"Cc", "Zl", "Zp"}


def line(text: str, most: int) -> str:
    """Return the text on one line of at most `most` characters, harmless to terminals, to XML and to surrounding
    text.
    """
    looked_at = _TAKEN_OUT.sub("", text[: _LOOKED_AT * most])
    plain = "".join(" " if unicodedata.category(each) in _BREAKS else each for each in looked_at)
    return " ".join(plain.split())[:most].rstrip()


def beginning(text: str, most: int) -> str:
    """Do the same as `line`, but cut between two words and end with an ellipsis."""
    whole = line(text, 2 * most)
    if len(whole) <= most:
        return whole
    words, _, _ = whole[:most].rpartition(" ")
    return f"{words.rstrip('.,;:… ') or whole[: most - 1]}…"


def link(url: str) -> str:
    """Return the URL if it is safe to follow, else ""."""
    # A user name in front of the host can look like a host, so such URLs are refused.
    fit = re.fullmatch(r"https?://[^\s@/?#]+([/?#][^\s]*)?", url[: LONGEST_URL + 1], re.IGNORECASE)
    if not fit or len(url) > LONGEST_URL or not url.isprintable() or re.search(r"[<>\"'`\\]", url):
        return ""
    return url if _host(url) else ""


def site(url: str) -> str:
    """Return the host without `www.`."""
    return _host(url).removeprefix("www.")


def count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def span(time: timedelta) -> str:
    minutes = max(int(time.total_seconds()), 0) // 60
    if minutes < 60:
        return count(minutes, "minute")
    hours = minutes // 60
    return count(hours, "hour") if hours < 48 else count(hours // 24, "day")


def day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
