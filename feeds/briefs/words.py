"""Words that strangers have written, and numbers, as people are to read them."""

import re
import unicodedata
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from feeds.models import LONGEST_URL

# What turns the direction of the text around it, or is no character at all; XML may not have the latter.
_TAKEN_OUT = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]")
# Of a text that is cut afterwards, looked at: what is taken out of it is a part of it only.
_LOOKED_AT = 4
_BREAKS = {"Cc", "Zl", "Zp"}


def line(text: str, most: int) -> str:
    """In one line of at most so many characters, and harmless to terminals, to XML and to the text around it."""
    looked_at = _TAKEN_OUT.sub("", text[: _LOOKED_AT * most])
    plain = "".join(" " if unicodedata.category(each) in _BREAKS else each for each in looked_at)
    return " ".join(plain.split())[:most].rstrip()


def beginning(text: str, most: int) -> str:
    """The same, cut between two words."""
    whole = line(text, 2 * most)
    if len(whole) <= most:
        return whole
    words, _, _ = whole[:most].rpartition(" ")
    return f"{words.rstrip('.,;:… ') or whole[: most - 1]}…"


def link(url: str) -> str:
    """Whoever wrote it: empty when it is not to be followed."""
    # A name before the host looks like one.
    fit = re.fullmatch(r"https?://[^\s@/?#]+([/?#][^\s]*)?", url[: LONGEST_URL + 1], re.IGNORECASE)
    if not fit or len(url) > LONGEST_URL or not url.isprintable() or re.search(r"[<>\"'`\\]", url):
        return ""
    return url if _host(url) else ""


def site(url: str) -> str:
    """The host, without what most of them have in front."""
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
