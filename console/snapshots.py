"""Compares the configuration packages of two builds, file by file and line by line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import Any

from work.operations.commands import clean

# The number of compared lines is limited, because the time grows with its square.
MOST_COMPARED = 2000
# Lines of differences for all files together.
MOST_LINES = 400
MOST_TEXTS = 50
LONGEST_LINE = 500
REQUIREMENTS = "requirements.txt"
_SETTINGS = (("entry point", "entry_point"), ("Python", "python_version"))
_TONES = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True)
class Setting:
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Line:
    tone: str
    text: str


@dataclass(frozen=True)
class Text:
    """A file that differs between the two packages."""

    path: str
    change: str
    lines: Sequence[Line]
    # Why lines are missing, if any are.
    note: str = ""


@dataclass(frozen=True)
class Difference:
    settings: Sequence[Setting]
    texts: Sequence[Text]
    # How many more files differ.
    left_out: int

    @property
    def is_none(self) -> bool:
        return not self.settings and not self.texts


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    settings = [
        Setting(name, str(before.get(key) or "same as ADE's"), str(after.get(key) or "same as ADE's"))
        for name, key in _SETTINGS
        if (before.get(key) or "") != (after.get(key) or "")
    ]
    old, new = _texts(before), _texts(after)
    changed = [path for path in {*old, *new} if old.get(path) != new.get(path)]
    changed.sort(key=lambda path: (path != REQUIREMENTS, path))
    texts, room, effort = [], MOST_LINES, MOST_COMPARED
    for path in changed[:MOST_TEXTS]:
        change = "added" if path not in old else "removed" if path not in new else "changed"
        old_lines, new_lines = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        number = len(old_lines) + len(new_lines)
        if number > effort:
            note = f"{len(old_lines):,} and {len(new_lines):,} lines: too many to be compared here."
            texts.append(Text(path, change, (), note))
            continue
        effort -= number
        # Skip the two header lines of the diff.
        diff = islice(unified_diff(old_lines, new_lines, n=2, lineterm=""), 2, 2 + room + 1)
        lines = [Line(_TONES.get(line[0], "same"), clean(line.expandtabs(4)[:LONGEST_LINE])) for line in diff]
        note = "" if lines else "Only the line endings differ."
        if len(lines) > room:
            note = "More lines differ than are shown here."
        texts.append(Text(path, change, lines[:room], note))
        room -= len(lines[:room])
    return Difference(settings, texts, max(0, len(changed) - MOST_TEXTS))


def _texts(snapshot: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a package, with the requirements as one more file."""
    requirements = str(snapshot.get("requirements") or "")
    files = {str(path): str(text) for path, text in (snapshot.get("files") or {}).items()}
    return files | ({REQUIREMENTS: requirements} if requirements else {})
