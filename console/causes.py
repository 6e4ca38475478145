"""Normalises failure messages. Numbers, names and paths are replaced by placeholders, so that failures with the same
cause get the same text.

Messages are untrusted. They are truncated first, and each pattern can start only at a word boundary, so that no pattern
backtracks over a long text.
"""

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

# Number of characters that are read of a message, and that are kept of the normalised text.
MOST_READ, LONGEST = 600, 300
KEY_CHARACTERS = 16

# The order matters, because a match of one pattern may contain matches of later ones: quoted text may contain anything.
_PLACEHOLDERS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b(?:https?|ftp|file|feed)://[^\s()<>\[\]\"'`“”]+", "URL"),
        (r'"[^"]*"', "“…”"),
        # The quotes must not be inside words: the text between two apostrophes is not quoted.
        (r"(?<!\w)'[^']*'(?!\w)", "“…”"),
        (r"`[^`]*`", "“…”"),
        (r"“[^“”]*”", "“…”"),
        (r"«[^«»]*»", "“…”"),
        (r"‘[^‘’]*’", "“…”"),
        (r"(?<![\w.~/\\-])[A-Za-z]:\\[^\s:;,]*", "PATH"),
        (r"(?<![\w.~/-])[\w.~-]*(?:/[\w.~-]+)+/?", "PATH"),
        (
            r"(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?i:pdf|csv|xlsx?|docx?|ods|txt|json|png|jpe?g|tiff?|html?|xml|zip)\b",
            "FILE",
        ),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC)|[+-]\d\d:?\d\d)?)?", "#"),
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "#"),
        (r"\b0x[0-9a-fA-F]+\b", "#"),
        (r"\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{7,}\b", "#"),
        # IDs made of letters and digits.
        (r"\b(?=[A-Za-z_]*[0-9])\w{12,}\b", "#"),
        (r"(?:(?<=\s)[+-])?[0-9]+(?:[.,:][0-9]+)*", "#"),
    )
)


class Cause(NamedTuple):
    """A cause of failures: the normalised message as `words`, and a hash as `key` for URLs."""

    key: str
    words: str


@lru_cache(maxsize=4096)
def cause_of(kind: str, failure_type: str, message: str) -> Cause:
    """Return the cause of a failure. All failures whose causes have the same key form one family."""
    words = normal(message)
    digest = hashlib.sha256(f"{kind}\n{failure_type}\n{words}".encode(errors="replace")).hexdigest()
    return Cause(digest[:KEY_CHARACTERS], words)


def normal(message: str) -> str:
    """Return the normalised message."""
    text = " ".join(message[:MOST_READ].split())
    for pattern, instead in _PLACEHOLDERS:
        text = pattern.sub(instead, text)
    return text[:LONGEST]
