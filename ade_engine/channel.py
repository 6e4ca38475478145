"""Tells the worker what happens: JSON lines on a descriptor of their own, so that no print is taken for an event."""

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

    def tell(self, kind: str, *, soon: bool = False, **values: Any) -> None:
        """With `soon`, together with what is told next. From a process that a step has forked: nothing."""
        line = json.dumps({"kind": kind, **values}, ensure_ascii=False, default=str, allow_nan=False) + "\n"
        if os.getpid() != self._process:
            return
        with self._lock:
            self._pending += line.encode(errors="replace")
            if not soon:
                self._flush()

    def _flush(self) -> None:
        while self._pending:
            self._pending = self._pending[os.write(self._descriptor, self._pending) :]


def own_channel() -> Channel:
    """The one that whoever started this process listens to; not for its children."""
    descriptor = int(os.environ.pop(VARIABLE))
    os.set_inheritable(descriptor, False)
    return Channel(descriptor)
