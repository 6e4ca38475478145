"""Checks lessons that come from a file, which people may have edited."""

from collections.abc import Callable, Mapping
from typing import Any

from ade_understanding.learning.candidates import LABEL_WORDS
from ade_understanding.learning.lessons import MOST_WAYS
from ade_understanding.learning.spellings import NUMBERS, READERS

LONGEST_TEXT = 1000
MOST_COUNTED = 100_000


class InvalidLesson(Exception):
    """A lesson of another origin cannot be used; the message says why."""


def check(method: Any) -> None:
    """Raise InvalidLesson unless `find` can use this lesson, which people may have edited."""
    texts = {"kind", "as", "currency", "value", "digest"}
    if not isinstance(method, dict) or not {"kind", "as", "ways"} <= method.keys() <= {*texts, "ways"}:
        raise InvalidLesson("It needs “kind”, “as” and “ways”.")
    if not all(isinstance(method[key], str) and len(method[key]) <= LONGEST_TEXT for key in texts & method.keys()):
        raise InvalidLesson(f"Its texts must have at most {LONGEST_TEXT} characters.")
    if method["kind"] not in {"text", *READERS, *NUMBERS}:
        raise InvalidLesson(f"Unknown kind {method['kind']!r}.")
    if not isinstance(method["ways"], list) or len(method["ways"]) > MOST_WAYS:
        raise InvalidLesson(f"It needs a list of at most {MOST_WAYS} “ways”.")
    for way in method["ways"]:
        if not isinstance(way, dict) or way.keys() != _WAY.keys():
            raise InvalidLesson(f"Each way needs exactly: {', '.join(_WAY)}.")
        for key, is_valid in _WAY.items():
            if not is_valid(way[key]):
                raise InvalidLesson(f"The “{key}” of a way is invalid.")


def _is_label(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) <= LABEL_WORDS
    return is_list and all(isinstance(word, str) and len(word) <= LONGEST_TEXT for word in value)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNTED


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


# The parts of a way, each with its check.
_WAY: Mapping[str, Callable[[Any], bool]] = {
    "left": _is_label,
    "skip": _is_count,
    "above": _is_label,
    "x": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_share, value)),
    "y": _is_share,
    "top": _is_share,
    "text": _is_flag,
    "front": _is_count,
    "back": _is_count,
    "inside": _is_flag,
    "end": _is_flag,
    "words": _is_count,
    "lines": _is_count,
    "length": _is_count,
    "letters": _is_flag,
    "style": lambda value: isinstance(value, str) and len(value) <= LONGEST_TEXT,
    "from_end": _is_count,
    "alike": _is_count,
    "fit": _is_share,
}
