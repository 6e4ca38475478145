"""Compares the packages of two builds, file by file and line by line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import Any

from work.operations.commands import clean

# Comparing takes time that grows with the square of the lines.
MOST_COMPARED = 2000
# For all files together.
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
    """A file that differs."""

    path: str
    change: str
    lines: Sequence[Line]
    # Why lines are missing, if some are.
    said: str = ""


@dataclass(frozen=True)
class Difference:
    settings: Sequence[Setting]
    texts: Sequence[Text]
    # Number of further files that differ.
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
    changed = [path for path in sorted({*old, *new}, key=_requirements_first) if old.get(path) != new.get(path)]
    pairs = ((path, old.get(path), new.get(path)) for path in changed[:MOST_TEXTS])
    return Difference(settings, list(_compared(pairs)), max(0, len(changed) - MOST_TEXTS))


def _texts(snapshot: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a package, with its requirements as one more file."""
    requirements = str(snapshot.get("requirements") or "")
    files = {str(path): str(text) for path, text in (snapshot.get("files") or {}).items()}
    return files | ({REQUIREMENTS: requirements} if requirements else {})


def _requirements_first(path: str) -> tuple[bool, str]:
    return path != REQUIREMENTS, path


def _compared(pairs: Iterator[tuple[str, str | None, str | None]]) -> Iterator[Text]:
    room, effort = MOST_LINES, MOST_COMPARED
    for path, before, after in pairs:
        change = "added" if before is None else "removed" if after is None else "changed"
        old, new = (before or "").splitlines(), (after or "").splitlines()
        if len(old) + len(new) > effort:
            yield Text(path, change, (), f"{len(old):,} and {len(new):,} lines: too many to be compared here.")
            continue
        effort -= len(old) + len(new)
        found = list(islice(_lines(old, new), room + 1))
        said = "Only the line endings differ." if not found else ""
        said = "More lines differ than are shown here." if len(found) > room else said
        yield Text(path, change, found[:room], said)
        room -= len(found[:room])


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    """Yield the diff without its two header lines."""
    for line in islice(unified_diff(old, new, n=2, lineterm=""), 2, None):
        yield Line(_TONES.get(line[0], "same"), clean(line.expandtabs(4)[:LONGEST_LINE]))
