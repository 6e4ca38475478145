"""Rules for the contents of a configuration, with messages for its author."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Any

MOST_FILES = 200
MOST_BYTES = 2**20
LONGEST_PATH = 200
LONGEST_NAME = 100
MOST_REQUIREMENTS_BYTES = 2**16
MOST_REQUIREMENTS_LINES = 1000
MOST_MANIFEST_BYTES = 2**14
MOST_PACKAGE_BYTES = MOST_BYTES + MOST_REQUIREMENTS_BYTES + MOST_MANIFEST_BYTES
# Files of a package that are not part of the configuration's own files.
MANIFEST = "ade.toml"
REQUIREMENTS = "requirements.txt"
# Messages show at most this many characters of a value.
_SHOWN = 100
MOST_TOLD = 10
# Letters, digits and what names of modules, data and packages need. No character is special in a shell or an archive.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# Files that Python, git and file managers create, and that are not part of a package.
_BYPRODUCT = re.compile(r"(^|/)(\.(?!\.?(/|$))|__pycache__(/|$))|\.pyc$", re.IGNORECASE)
# NUL and lone surrogates.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?", re.ASCII)
_PYTHON_VERSION = re.compile(r"3\.(1[1-9]|[2-9][0-9])", re.ASCII)

_LINE = re.compile("\r\n|\r|\n")
_COMMENT = re.compile(r"(^|\s)#.*")
# Other programs that read the lines may take these characters for line ends.
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_REFUSED_ANYWHERE = (
    (re.compile(r"[^\t -~]"), "only ASCII is allowed outside comments"),
    (re.compile(r"(^|\s)-"), "options are not allowed, because the installation decides where packages come from"),
    (re.compile(r"\\$"), "it continues on the next line, but each requirement must be on one line"),
    (re.compile(r"\$"), "environment variables are not expanded"),
)
_NOT_AN_ADDRESS = "packages come from the package index, not from an address"
_NOT_A_FILE = "packages come from the package index, not from files or folders"
# The part after a semicolon compares strings, which may contain anything.
_REFUSED_BEFORE_MARKERS = ((re.compile("[@:]"), _NOT_AN_ADDRESS), (re.compile(r"^\.|[/\\]"), _NOT_A_FILE))
_ARCHIVES = (".whl", ".zip", ".tgz", ".tbz", ".tbz2", ".txz", ".tlz")


class BadPackage(Exception):
    """Has all problems in `problems`; the message lists the first ones."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        more = len(self.problems) - MOST_TOLD
        super().__init__(" ".join([*self.problems[:MOST_TOLD], *([f"And {more} more."] if more > 0 else [])]))


def problems_of_files(files: Any) -> Iterator[str]:
    if not isinstance(files, dict):
        yield f"The files must be an object that maps paths to texts, not {_kind(files)}."
        return
    if len(files) > MOST_FILES:
        yield f"A configuration may have at most {MOST_FILES} files, not {len(files)}."
        return
    yield from problems_of_paths(files)
    for path, text in files.items():
        if path.casefold() in (MANIFEST, REQUIREMENTS):
            yield f"{path!r} is reserved for the package and cannot be a file of the configuration."
        if not isinstance(text, str):
            yield f"The content of {shown(path)} must be a text, not {_kind(text)}."
        elif found := _UNSTORABLE.search(text):
            yield f"{shown(path)} contains {found[0]!r}, which the database cannot store."
    size = sum(len(text.encode(errors="replace")) for text in files.values() if isinstance(text, str))
    if size > MOST_BYTES:
        yield f"All files together may have at most {MOST_BYTES} bytes, not {size}."


def problems_of_paths(files: Collection[str], folders: Collection[str] = ()) -> Iterator[str]:
    """Check paths of files, and of folders that may be empty, for characters and for conflicts with each other."""
    for path in [*files, *folders]:
        yield from _problems_of_path(path)
    short = [path for path in files if len(path) <= LONGEST_PATH]
    around = {path[:n] for path in short for n, letter in enumerate(path) if letter == "/"}
    around.update(path for path in folders if len(path) <= LONGEST_PATH)
    yield from _clashes([*short, *sorted(around)])
    for path in sorted(around.intersection(short)):
        yield f"{path!r} is both a file and a folder."


def problems_of_entry_point(text: str) -> Iterator[str]:
    if _ENTRY_POINT.fullmatch(text) is None:
        yield f"The entry point must be a module or MODULE:FUNCTION, not {shown(text)}."


def problems_of_name(text: str) -> Iterator[str]:
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        yield f"The name must have 1 to {LONGEST_NAME} printable characters, no spaces around them, not {shown(text)}."


def problems_of_python_version(text: str) -> Iterator[str]:
    if text and _PYTHON_VERSION.fullmatch(text) is None:
        yield f"The Python version must be '3.11' or later, or empty to use ADE's own, not {shown(text)}."


def problems_of_requirements(text: str) -> Iterator[str]:
    """Check the form only. The package index judges names and versions."""
    if (size := len(text.encode(errors="replace"))) > MOST_REQUIREMENTS_BYTES:
        yield f"The requirements may have at most {MOST_REQUIREMENTS_BYTES} bytes, not {size}."
        return
    lines = _LINE.split(text)
    if len(lines) > MOST_REQUIREMENTS_LINES:
        yield f"The requirements may have at most {MOST_REQUIREMENTS_LINES} lines, not {len(lines)}."
        return
    for number, line in enumerate(lines, start=1):
        if reason := _why_refused(line):
            yield f"Line {number} of the requirements, {shown(line)}, is not like 'package>=1.2': {reason}."


def is_byproduct(path: str) -> bool:
    return _BYPRODUCT.search(path) is not None


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…{text[-1]}"


def _problems_of_path(path: str) -> Iterator[str]:
    if len(path) > LONGEST_PATH:
        yield f"A path may have at most {LONGEST_PATH} characters, not {len(path)}."
    elif not all(_PART.fullmatch(part) for part in path.split("/")):
        yield (
            f"{path!r} is not a relative path of letters, digits, dots, dashes and underscores."
            " No part of it may be empty or begin with a dot or a dash."
        )
    elif is_byproduct(path):
        yield f"{path!r} is generated by Python and cannot be a file of the configuration."


def _clashes(paths: Iterable[str]) -> Iterator[str]:
    spelled: dict[str, str] = {}
    for path in paths:
        composed = unicodedata.normalize("NFC", path)
        other = spelled.setdefault(unicodedata.normalize("NFC", composed.casefold()), path)
        if unicodedata.normalize("NFC", other) != composed:
            yield f"{path!r} and {other!r} differ only in capital letters, which some file systems do not distinguish."
        elif other != path:
            yield f"{path!r} and {other!r} differ only in how accents are written: {path!a}, {other!a}."


def _why_refused(line: str) -> str:
    if _CONTROL.search(line):
        return "it contains a control character"
    said = _COMMENT.sub("", line).strip(" \t")
    named = said.partition(";")[0].strip()
    broken = [reason for pattern, reason in _REFUSED_ANYWHERE if pattern.search(said)]
    broken += [reason for pattern, reason in _REFUSED_BEFORE_MARKERS if pattern.search(named)]
    broken += [_NOT_A_FILE] if _is_archive(named.partition("[")[0].strip().lower()) else []
    return broken[0] if broken else ""


def _is_archive(name: str) -> bool:
    return name.endswith((".tar", *_ARCHIVES)) or name.rpartition(".")[0].endswith(".tar")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
