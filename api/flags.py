"""Booleans in form data: only `true` and `false`, not the many other words that Pydantic accepts."""

from typing import Annotated, Any

from pydantic import BeforeValidator

_WORDS: dict[Any, bool] = {"true": True, "false": False}


def _read(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if given not in _WORDS:
        raise ValueError("must be true or false")
    return _WORDS[given]


Flag = Annotated[bool, BeforeValidator(_read)]
