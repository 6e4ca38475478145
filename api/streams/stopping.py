"""Whether this process has been told to end. Whoever serves says so; see config/server.py."""

from collections.abc import Callable


def _never() -> bool:
    return False


asks: list[Callable[[], bool]] = [_never]


def is_stopping() -> bool:
    return any(ask() for ask in asks)
