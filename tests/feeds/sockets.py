"""Record every connection attempt of this process with an audit hook, whichever library opens the socket."""

import sys
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_tried: list[tuple[str, int]] | None = None
# The hook is installed at the first use only, because an audit hook cannot be removed.
_hooked = False


@contextmanager
def watched():
    """Yield the list of addresses that connections are attempted to; refuse those to other machines."""
    global _tried, _hooked
    with _lock:
        if not _hooked:
            sys.addaudithook(_look)
            _hooked = True
        _tried = tried = []
    try:
        yield tried
    finally:
        with _lock:
            _tried = None


def _look(event, arguments):
    if event != "socket.connect" or _tried is None or not isinstance(arguments[1], tuple):
        return
    address, port = arguments[1][:2]
    _tried.append((address, port))
    if not address.startswith("127."):
        raise ConnectionRefusedError(111, "No connection leaves the tests")
