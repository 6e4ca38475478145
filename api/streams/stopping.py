"""Whether this process is shutting down. The server adds its own check to `asks`: see config/server.py."""

from collections.abc import Callable

stop_checks: list[Callable[[], bool]] = []


def is_stopping() -> bool:
    return any(ask() for ask in stop_checks)
