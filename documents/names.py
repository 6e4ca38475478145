"""Cleans file names. A name is only shown to people and never used as a path."""

import re
import unicodedata

LONGEST_BYTES = 255
NAMELESS = "unnamed"
# Control, format and surrogate characters confuse people and file systems. Joiners stay: words and emoji need them.
_REMOVED = frozenset({"Cc", "Cf", "Cs"})
JOINERS = "\u200c\u200d"
# To limit the work of cleaning a very long name, only this many characters at either end are used.
_MOST = 4 * LONGEST_BYTES


def clean_name(name: str) -> str:
    """Return the last part of a path as one visible line of 1 to 255 bytes."""
    last = re.split(r"[/\\]", name)[-1]
    if len(last) > 2 * _MOST:
        last = last[:_MOST] + last[-_MOST:]
    spaced = "".join(" " if c.isspace() else c for c in last)
    visible = "".join(c for c in spaced if unicodedata.category(c) not in _REMOVED or c in JOINERS)
    clean = " ".join(unicodedata.normalize("NFC", visible).split())
    if not clean.strip(". " + JOINERS):
        return NAMELESS
    if len(clean.encode()) <= LONGEST_BYTES:
        return clean
    # Cut the name to its limit, but keep its suffix.
    suffix = re.search(r"\.\w{1,10}$", clean)
    end = suffix[0] if suffix else ""
    return clean.encode()[: LONGEST_BYTES - len(end.encode())].decode(errors="ignore").rstrip() + end
