"""What files are called: data to show to people, and never a path."""

import re
import unicodedata

LONGEST_BYTES = 255
NAMELESS = "unnamed"
# Of which a file system, a header or a person could not tell what they are. Joiners belong to words and to pictures.
_REMOVED = frozenset({"Cc", "Cf", "Cs"})
JOINERS = "\u200c\u200d"
# Read from the end: nobody needs to look at more of it.
_MOST = 4 * LONGEST_BYTES


def clean_name(name: str) -> str:
    """The last part of it, in one line of at most 255 bytes, without what cannot be seen; never empty."""
    last = re.split(r"[/\\]", name)[-1]
    spaced = "".join(" " if c.isspace() else c for c in _ends_of(last))
    seen = "".join(c for c in spaced if unicodedata.category(c) not in _REMOVED or c in JOINERS)
    found = " ".join(unicodedata.normalize("NFC", seen).split())
    return _cut(found) if found.strip(". " + JOINERS) else NAMELESS


def _ends_of(text: str) -> str:
    return text if len(text) <= 2 * _MOST else text[:_MOST] + text[-_MOST:]


def _cut(name: str) -> str:
    """Short enough, and with the suffix that it had."""
    if len(name.encode()) <= LONGEST_BYTES:
        return name
    suffix = re.search(r"\.\w{1,10}$", name)
    end = suffix[0] if suffix else ""
    return name.encode()[: LONGEST_BYTES - len(end.encode())].decode(errors="ignore").rstrip() + end
