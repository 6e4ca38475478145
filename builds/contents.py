"""What the files of a configuration may be, in words for whoever wrote them."""

import re
from collections.abc import Iterator
from typing import Any

MOST_FILES = 200
MOST_BYTES = 2**20
LONGEST_PATH = 200
# Letters, digits and what names of modules, data and packages need; nothing that a shell or an archive reads otherwise.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# NUL, and halves of pairs that mean nothing alone.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?", re.ASCII)


def problems_of_files(files: Any) -> Iterator[str]:
    if not isinstance(files, dict):
        yield f"Expected an object that maps paths to texts, found {_kind(files)}."
        return
    if len(files) > MOST_FILES:
        yield f"Expected at most {MOST_FILES} files, found {len(files)}."
    seen: dict[str, str] = {}
    for path, text in files.items():
        yield from _problems_of_path(path)
        if (other := seen.setdefault(path.casefold(), path)) != path:
            yield f"{path!r} and {other!r} differ only in capital letters, which some file systems do not tell apart."
        if not isinstance(text, str):
            yield f"Expected the text of {path!r}, found {_kind(text)}."
        elif found := _UNSTORABLE.search(text):
            yield f"Expected text in {path!r}, found {found[0]!r}, which no database stores."
    size = sum(len(text.encode(errors="replace")) for text in files.values() if isinstance(text, str))
    if size > MOST_BYTES:
        yield f"Expected at most {MOST_BYTES} bytes in all files, found {size}."


def problems_of_entry_point(text: str) -> Iterator[str]:
    if _ENTRY_POINT.fullmatch(text) is None:
        yield f"Expected a module, or MODULE:FUNCTION, found {text!r}."


def _problems_of_path(path: str) -> Iterator[str]:
    if len(path) > LONGEST_PATH:
        yield f"Expected paths of at most {LONGEST_PATH} characters, found one of {len(path)}."
    elif not all(_PART.fullmatch(part) for part in path.split("/")):
        yield (
            f"Expected a relative path of letters, digits, dots, dashes and underscores, found {path!r}."
            " No part of it may be empty or begin with a dot or a dash."
        )


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
