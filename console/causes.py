"""Normalises failure messages: numbers, names and paths are replaced by placeholders, so that failures with the same
cause look alike.

Messages are untrusted. They are truncated first, and each pattern can start only at a word boundary, so none of them
backtracks over a long text.
"""

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

# Characters of a message that are read, and characters of a cause that are compared.
MOST_READ, LONGEST = 600, 300
KEY_CHARACTERS = 16

# The order matters: quoted text may contain all of the others, and so on.
_PLACEHOLDERS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b(?:https?|ftp|file|feed)://[^\s()<>\[\]\"'`“”]+", "URL"),
        (r'"[^"]*"', "“…”"),
        # Not the text between two apostrophes.
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
        # IDs of letters and digits.
        (r"\b(?=[A-Za-z_]*[0-9])\w{12,}\b", "#"),
        (r"(?:(?<=\s)[+-])?[0-9]+(?:[.,:][0-9]+)*", "#"),
    )
)


class Cause(NamedTuple):
    """The normalised message, and a hash of it as an opaque `key` for URLs."""

    key: str
    words: str


@lru_cache(maxsize=4096)
def cause_of(kind: str, failure_type: str, message: str) -> Cause:
    """Return the cause of a failure. Failures with the same key form one family."""
    words = normal(message)
    digest = hashlib.sha256(f"{kind}\n{failure_type}\n{words}".encode(errors="replace")).hexdigest()
    return Cause(digest[:KEY_CHARACTERS], words)


def normal(message: str) -> str:
    """Return the message with placeholders."""
    text = " ".join(message[:MOST_READ].split())
    for pattern, instead in _PLACEHOLDERS:
        text = pattern.sub(instead, text)
    return text[:LONGEST]
