"""Cleans the names of files. A name is shown to people and is never used as a path."""

import re
import unicodedata

LONGEST_BYTES = 255
NAMELESS = "unnamed"
# Control, format and surrogate characters confuse people and file systems. Joiners are part of words and emoji.
_REMOVED = frozenset({"Cc", "Cf", "Cs"})
JOINERS = "\u200c\u200d"
# Longer names are shortened to both ends before they are cleaned, to limit the work.
_MOST = 4 * LONGEST_BYTES


def clean_name(name: str) -> str:
    """Return the last part of a path as one visible line of at most 255 bytes; never empty."""
    last = re.split(r"[/\\]", name)[-1]
    spaced = "".join(" " if c.isspace() else c for c in _ends_of(last))
    seen = "".join(c for c in spaced if unicodedata.category(c) not in _REMOVED or c in JOINERS)
    found = " ".join(unicodedata.normalize("NFC", seen).split())
    return _cut(found) if found.strip(". " + JOINERS) else NAMELESS


def _ends_of(text: str) -> str:
    return text if len(text) <= 2 * _MOST else text[:_MOST] + text[-_MOST:]


def _cut(name: str) -> str:
    """Cut the name to its limit, but keep its suffix."""
    if len(name.encode()) <= LONGEST_BYTES:
        return name
    suffix = re.search(r"\.\w{1,10}$", name)
    end = suffix[0] if suffix else ""
    return name.encode()[: LONGEST_BYTES - len(end.encode())].decode(errors="ignore").rstrip() + end
