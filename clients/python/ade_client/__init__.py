"""A client for ADE's API without dependencies: `Client("https://ade.example.com", token)`. See docs/api.md."""

from typing import Any

from ade_client.operations import Operations
from ade_client.transport import Event, File, Problem, Progress, Transport, Unreachable

__all__ = ["Client", "Event", "File", "Problem", "Progress", "Transport", "Unreachable"]


class Client(Operations):
    def __init__(self, address: str, token: str, **options: Any) -> None:
        """`options` are passed to Transport: `timeout_seconds`, `attempts`, `tls`."""
        super().__init__(Transport(address, token, **options))
