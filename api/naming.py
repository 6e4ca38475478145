"""Derives the operation IDs and summaries of the API from the function name, the tag and the HTTP method."""

import re
from typing import NamedTuple

# First words in the names of functions that read. If a reading function starts with another word, "show" or "list" is
# put in front.
READS = {
    "list",
    "show",
    "search",
    "download",
    "follow",
    "stream",
    "find",
    "preview",
    "check",
    "explain",
    "rehearse",
    "link",
}
SPECIAL = {"again": "{noun} again", "why": "show why {noun} waits"}


class Operation(NamedTuple):
    function: str
    tag: str
    reads: bool
    lists: bool


def id_of(operation: Operation) -> str:
    """Return the operation ID. For the tag "runs", the function `cancel` becomes cancelRun, and `log`, which reads,
    showRunLog.
    """
    return camel("_".join(words_of(operation).split()))


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def words_of(operation: Operation) -> str:
    noun = re.sub("s$", "", re.sub("ies$", "y", operation.tag))
    words = operation.function.strip("_").split("_")
    if operation.function in SPECIAL:
        return SPECIAL[operation.function].format(noun=noun)
    if operation.reads and words[0] not in READS:
        words.insert(0, "list" if operation.lists else "show")
    if not {noun, operation.tag} & set(words):
        words.insert(1, operation.tag if operation.lists and len(words) == 1 else noun)
    return " ".join(words)


def plain(path: str) -> str:
    """Return the path without path converters, as the API description shows it."""
    return re.sub(r"{[^}:]+:", "{", path)
