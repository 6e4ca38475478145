"""Sends events to the worker as JSON lines.

Events have their own descriptor, so that printed text is never read as an event.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "ADE_EVENTS_FD"


class Channel:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()
        self._lock = allocate_lock()
        self._pending = b""

    def send(self, kind: str, *, soon: bool = False, **values: Any) -> None:
        """Send an event. With `soon`, buffer the event and send it together with the next one.

        A process that was forked by a step sends nothing.
        """
        line = json.dumps({"kind": kind, **values}, ensure_ascii=False, default=str, allow_nan=False) + "\n"
        if os.getpid() != self._process:
            return
        with self._lock:
            self._pending += line.encode(errors="replace")
            while self._pending and not soon:
                self._pending = self._pending[os.write(self._descriptor, self._pending) :]


def own_channel() -> Channel:
    """Return the channel to the parent process, and keep child processes from inheriting it."""
    descriptor = int(os.environ.pop(VARIABLE))
    os.set_inheritable(descriptor, False)
    return Channel(descriptor)
