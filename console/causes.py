"""What failures have in common: their messages without the numbers, names and places in which they differ.

Messages come from anywhere. Each is cut before it is looked at, and each pattern begins only where a word does: none
goes back and forth over a text.
"""

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

# Of a message, so much is looked at; of a cause, so much is told apart.
MOST_READ, LONGEST = 600, 300
KEY_CHARACTERS = 16

# In this order: what is quoted may hold all of the others, and so on.
_PLACEHOLDERS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b(?:https?|ftp|file|feed)://[^\s()<>\[\]\"'`“”]+", "URL"),
        (r'"[^"]*"', "“…”"),
        # Not what stands between two apostrophes.
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
        # Ids in letters and digits.
        (r"\b(?=[A-Za-z_]*[0-9])\w{12,}\b", "#"),
        (r"(?:(?<=\s)[+-])?[0-9]+(?:[.,:][0-9]+)*", "#"),
    )
)


class Cause(NamedTuple):
    """`key` stands for it in addresses, and says nothing of it."""

    key: str
    words: str


@lru_cache(maxsize=4096)
def cause_of(kind: str, failure_type: str, message: str) -> Cause:
    """Of a row of this kind: failures with the same key are of one family."""
    words = normal(message)
    digest = hashlib.sha256(f"{kind}\n{failure_type}\n{words}".encode(errors="replace")).hexdigest()
    return Cause(digest[:KEY_CHARACTERS], words)


def normal(message: str) -> str:
    """The message with placeholders for whatever it names."""
    text = " ".join(message[:MOST_READ].split())
    for pattern, instead in _PLACEHOLDERS:
        text = pattern.sub(instead, text)
    return text[:LONGEST]
